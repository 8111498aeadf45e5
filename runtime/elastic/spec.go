package elastic

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// Node is one machine of the job and how many ranks it runs.
type Node struct {
	Host  string // for ssh; "" or "localhost": this machine
	Ranks int
}

func (n Node) local() bool { return n.Host == "" || n.Host == "localhost" }

// Spec says what to run. Its functions are optional; they are called one at a
// time, while the job runs, and should be quick: the ranks' output waits for them.
type Spec struct {
	RunID string // names the job to its ranks; "": a random one
	Nodes []Node // ranks are numbered in this order

	Command []string // what each rank executes; nil: this program in the role of a rank
	Role    string   // what the ranks are called: ROLE_NAME; "": default
	Env     []string // NAME=value, added to the environment of each node; guests have their own
	Dir     string   // working directory; "": ours, or where ssh leads; guests have their own
	Payload []byte   // given to each rank: launch.Rank.Payload
	Port    int      // rank 0's MASTER_PORT; 0: a free one
	LogDir  string   // for gen-N/rank-R.{out,err,error.json} and control.log; "": no files

	Live        bool          // ranks that survive a failure go on: they must obey launch.Channel
	HangTimeout time.Duration // Live: a rank that completes nothing for longer is replaced; 0: none is
	Lease       time.Duration // of other nodes: silence after which they count as lost; 0: DefaultLease
	MinNodes    int           // that a generation needs; 0: all
	MaxNodes    int           // that it may have; 0: any number
	MaxRanks    int           // the same of ranks
	MaxRestarts int           // within Window, before the job gives up
	Window      time.Duration // 0: the whole run
	Grace       time.Duration // from the first signal to a kill; 0: unlimited

	// Signals: the first SIGINT or SIGTERM asks the ranks to stop (each gets
	// SIGTERM), the second kills them; SIGUSR1 is passed on to each rank.
	Signals <-chan os.Signal

	// Requests come from people while the job runs, Guests from Receive. Both may
	// be nil. First are guests that have come already, in the order of their ranks.
	Requests <-chan Request
	Guests   <-chan Guest
	First    []Guest

	// OnLine gets the ranks' output, stream is "stdout" or "stderr". Lines of more
	// than 64 KiB come in pieces. line is valid during the call.
	OnLine func(generation, rank int, stream string, line []byte)
	// OnEvent gets whole lines that ranks wrote to launch.Rank.Events.
	OnEvent func(generation, rank int, line []byte)
	// OnFailure gets the root cause of a generation's end, once all its output is there.
	OnFailure func(Failure)
	// OnMember tells of nodes that come and go after the first generation.
	OnMember func(Member)
	// OnNote tells what a person may want to know of the hosts, in a line.
	OnNote func(string)
	// OnRecovery tells that a new generation's ranks were started; down is the time
	// since the failure, and goes on growing.
	OnRecovery func(generation int, down func() time.Duration)
}

// DefaultLease is how long a node may be silent before it counts as lost.
const DefaultLease = 5 * time.Second

// Failure is why a generation ended.
type Failure struct {
	Generation, Rank int // when a whole node was lost: its first rank
	Host             string
	PID              int
	Cause            string // in words, one line
	ExitCode         int    // as a shell gives it: 128+n for signal n
	Signal           string // name of the signal that killed it; "": none
	ErrorFile        string // the rank's own report, in torchelastic's format; "": none
	LastOperation    string // its last collective and where that stood, one line; "": none is known
	FlightFile       string // its last collectives, a line each; "": none
	LogTail          []string
	Step             int // last completed step that the rank reported; 0: it reported nothing
	Time             time.Time
}

// Member is a change of the job's membership.
type Member struct {
	Host      string
	Came      bool // else it left
	WorldSize int  // ranks afterwards
	Reason    string
}

// Result is how a job ended.
type Result struct {
	// ExitCode is launch.ExitOK, ExitUsage or ExitSnapshot if a rank ended so,
	// ExitRendezvous when a node could not be reached, 128+n after a clean stop by
	// signal n, and ExitFailed after one that was not clean. When the restarts were
	// used up it is ExitGaveUp, but for a Command the failed rank's own.
	ExitCode    int
	Restarts    int       // failures that a generation came after
	Generations int       // after the first
	Failure     *Failure  // root cause of the last failure
	Stopped     os.Signal // the first one that asked for an end; nil: none
}

// validate returns the first thing that is wrong with s.
func (s *Spec) validate() error {
	if len(s.Nodes) == 0 {
		return errors.New("no nodes to run on")
	}
	for i, n := range s.Nodes {
		if n.Ranks < 1 {
			return fmt.Errorf("node %d has %d ranks, want at least 1", i, n.Ranks)
		}
		if strings.HasPrefix(n.Host, "-") {
			return fmt.Errorf("node %d: %q is no host name", i, n.Host)
		}
	}
	if s.Command != nil && (len(s.Command) == 0 || s.Command[0] == "") {
		return errors.New("the command is empty")
	}
	if s.Live && s.Command != nil {
		return errors.New("a foreign command cannot live through failures")
	}
	if s.MinNodes < 0 || s.MinNodes > len(s.Nodes) && s.Guests == nil || s.MaxNodes < 0 || s.MaxNodes > 0 && s.MaxNodes < s.MinNodes {
		return fmt.Errorf("at least %d and at most %d of %d nodes cannot be", s.MinNodes, s.MaxNodes, len(s.Nodes))
	}
	if s.Lease == 0 {
		s.Lease = DefaultLease
	}
	if s.MaxRestarts < 0 || s.Window < 0 || s.Grace < 0 {
		return fmt.Errorf("negative limit: %d restarts, window %v, grace %v", s.MaxRestarts, s.Window, s.Grace)
	}
	if os.Getenv(launch.RoleVariable) == launch.RoleAgent {
		return fmt.Errorf("%s=%s is set: this program was started as an agent, and must call AgentMain", launch.RoleVariable, launch.RoleAgent)
	}
	return nil
}

// settings is what the control plane needs to know of s.
func (s *Spec) settings() Settings {
	c := Settings{Live: s.Live, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes, MaxRanks: s.MaxRanks, MaxRestarts: s.MaxRestarts, Window: s.Window, Grace: s.Grace, OwnCode: s.Command != nil}
	for _, n := range s.Nodes {
		c.Ranks = append(c.Ranks, n.Ranks)
	}
	c.Store = s.world() > 1 || s.Command != nil || s.MaxNodes > 1
	return c
}

func (s *Spec) world() int {
	total := 0
	for _, n := range s.Nodes {
		total += n.Ranks
	}
	return total
}

// allLocal tells whether every node is this machine.
func (s *Spec) allLocal() bool {
	for _, n := range s.Nodes {
		if !n.local() {
			return false
		}
	}
	return true
}

// signalOf turns an os.Signal into a number.
func signalOf(s os.Signal) syscall.Signal {
	if n, ok := s.(syscall.Signal); ok {
		return n
	}
	return syscall.SIGTERM
}

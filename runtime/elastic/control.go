package elastic

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// Settings are the limits of a job. Times are durations.
type Settings struct {
	Ranks       []int // by node
	Live        bool  // ranks that survive a failure go on
	MinNodes    int   // that a generation needs; 0: all of Ranks
	MaxNodes    int   // that a generation may have; 0: any number
	MaxRanks    int   // the same of ranks
	Store       bool  // generations need rank 0's socket
	MaxRestarts int   // within Window
	Window      time.Duration
	Grace       time.Duration // of a stop; 0: unlimited
	OwnCode     bool          // giving up has the failed rank's exit code
}

const (
	// JoinTime is how long the agents that a generation needs may take to be there.
	JoinTime = time.Minute
	// LastCall is how long a first generation waits for more nodes than it needs.
	LastCall = 5 * time.Second
	// CauseTime is how long a generation goes on after a rank that blames another:
	// the culprit may still say why. Nothing else delays what follows a failure.
	CauseTime = 500 * time.Millisecond
	// HungTime is CauseTime for a rank that hangs: it is to say first what it does.
	HungTime = 3 * time.Second
	// ProofTime is how long a node must run before its failures are the job's: a
	// newcomer that fails sooner is sent away.
	ProofTime = 10 * time.Second
	// firstPause and longestPause bound the time before an attempt to get a node
	// back; each doubles the one before.
	firstPause, longestPause = time.Second, time.Minute
)

// phase is where the job stands.
type phase int

const (
	joining    phase = iota // agents are awaited
	listening               // rank 0's node opens a socket
	running                 // ranks run
	suspecting              // a rank blames another, of whom nothing is known yet
	pausing                 // ranks were asked to wait after their step
	stopping                // ranks were asked to stop
	killing                 // ranks were killed and are being cleared away
	over
)

// Control is the control plane: it decides what happens to the job. It does no
// input or output and has no clock; times are since the job's beginning.
//
// A generation is one world, from its start until its membership changes or
// something in it fails. Under live recovery the processes of ranks go from one
// generation to the next; else each has its own.
type Control struct {
	set     Settings
	phase   phase
	gen     int
	nodes   []machine
	order   []int // nodes of the generation at hand or to come, in the order of their ranks
	retries int   // nodes that are to be got back at some time
	ups     int   // nodes of order whose ranks were started
	ranks   []rankState
	ends    endings

	due   time.Duration // when the phase has lasted long enough; 0: never
	timer time.Duration // last Timer

	suspectAt time.Duration   // when the first rank blamed another
	failedAt  time.Duration   // of the failure that is being recovered from; 0: none
	restarts  []time.Duration // that count against the budget
	anew      bool            // what is being killed starts again without counting
	stop      syscall.Signal  // first signal that asked for an end
	forced    bool            // the stop was not clean
	cancel    bool

	out    []Action
	reason string
}

// where tells what is known of a node's agent.
type where int

const (
	away     where = iota // there is none
	coming                // it is being started
	there                 // it waits
	warming               // its ranks were started and are not ready
	warm                  // they wait for a generation
	enlisted              // it belongs to the generation at hand
)

// machine is one node.
type machine struct {
	ranks     int
	at        where
	up, quiet bool // of the generation: its ranks were started; nothing is left of them
	guest     bool // it came by itself, and cannot be called back
	leaving   bool
	known     bool          // it has been a member before
	since     time.Duration // of its membership; 0: from the first generation on
	pause     time.Duration // before the next attempt to get it back
	again     time.Duration // when that is due; 0: it is not. Set by retry
}

// rankState is what a rank of the generation at hand does.
type rankState int

const (
	active   rankState = iota
	waiting            // it has paused
	stranded           // its world broke, it lives
	gone               // it has ended
)

// NewControl returns the control plane of a job that has not begun.
func NewControl(set Settings) *Control {
	c := &Control{set: set}
	for _, n := range set.Ranks {
		c.nodes = append(c.nodes, machine{ranks: n})
	}
	if set.MinNodes == 0 {
		c.set.MinNodes = len(set.Ranks)
	}
	return c
}

// Step takes an event and returns what to do, in order, and why. It must not be
// called again after a Finish.
func (c *Control) Step(now time.Duration, event Event) (actions []Action, reason string) {
	c.out, c.reason = nil, ""
	switch e := event.(type) {
	case Begin:
		c.gather(now, "the job begins")
	case Joined:
		c.nodeJoined(now, e.Node)
	case Lost:
		c.nodeLost(now, e.Node)
	case Listening:
		if c.current(e.Gen, listening) {
			c.start(now, "the store's socket is open")
		}
	case Up:
		c.nodeUp(now, e)
	case Ready:
		c.nodeReady(now, e.Node)
	case Offered:
		c.nodeOffered(e)
	case Drain:
		c.drain(now, e.Node)
	case Exited:
		c.rankExited(now, e)
	case Stranded:
		c.rankStranded(now, e)
	case Paused:
		c.rankPaused(now, e)
	case Quiet:
		c.nodeQuiet(now, e)
	case Signalled:
		c.signalled(now, e.Signal)
	case Expired:
		c.expired(now)
	case Cancelled:
		c.cancelled()
	}
	if c.phase == killing && len(c.order) == 0 {
		c.settleWhenQuiet(now) // there is nobody who could say so
	}
	c.setTimer()
	return c.out, c.reason
}

// do adds actions and says why.
func (c *Control) do(reason string, actions ...Action) {
	c.out = append(c.out, actions...)
	if c.reason != "" {
		c.reason += "; "
	}
	c.reason += reason
}

// setTimer asks for Expired when the first thing is due, unless that is known.
func (c *Control) setTimer() {
	first := c.due
	for i := 0; c.retries > 0 && i < len(c.nodes); i++ {
		n := &c.nodes[i]
		if n.again != 0 && (first == 0 || n.again < first) {
			first = n.again
		}
	}
	if c.phase == over {
		return
	}
	if c.timer != first {
		c.timer = first
		c.out = append(c.out, Timer{first})
	}
}

// current tells whether an event of generation gen belongs to the phase.
func (c *Control) current(gen int, p phase) bool {
	if gen == c.gen && c.phase == p {
		return true
	}
	c.late(gen)
	return false
}

func (c *Control) late(gen int) { c.do(fmt.Sprintf("it came too late for generation %d", gen)) }

// alive tells whether ranks of the current generation may run.
func (c *Control) alive() bool {
	return c.phase == running || c.phase == suspecting || c.phase == pausing || c.phase == stopping
}

// nodeOf is the node of a rank of the generation at hand, -1 for none.
func (c *Control) nodeOf(rank int) int {
	for _, n := range c.order {
		if rank < c.nodes[n].ranks {
			return n
		}
		rank -= c.nodes[n].ranks
	}
	return -1
}

// ranksOf are the ranks of a node of the generation at hand.
func (c *Control) ranksOf(node int) (first, end int) {
	for _, n := range c.order {
		if n == node {
			return first, first + c.nodes[n].ranks
		}
		first += c.nodes[n].ranks
	}
	return 0, 0
}

// all tells whether f holds for all ranks of the generation.
func (c *Control) all(f func(rankState) bool) bool {
	return !slices.ContainsFunc(c.ranks, func(r rankState) bool { return !f(r) })
}

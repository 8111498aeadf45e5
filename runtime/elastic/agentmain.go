package elastic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// AgentMain is the whole program in the role of an agent (or of a guard, see
// guard.go): it obeys the launcher at the other end of stdin and stdout until
// stdin ends, then leaves nothing behind and returns the exit code.
func AgentMain() int {
	// A launcher that died must not kill us through its pipe: stdin says it better.
	// The terminal's Ctrl-C is the launcher's to handle. Caught rather than
	// ignored, since ranks would inherit that; nobody reads the channel.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	leave := make(chan os.Signal, 2)
	signal.Notify(leave, syscall.SIGTERM)
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	var first command
	if err := in.Decode(&first); err != nil {
		fmt.Fprintf(os.Stderr, "ddp: agent: read the first command: %v (agents are started by the launcher)\n", err)
		return launch.ExitUsage
	}
	var err error
	switch {
	case first.Guard != nil:
		return serveGuard(*first.Guard, os.Stdin)
	case first.Setup != nil:
		_, err = serveAgent(*first.Setup, in, os.Stdout, leave)
	default:
		err = errors.New("the first command is neither setup nor guard")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ddp: agent: %v\n", err)
		return launch.ExitFailed
	}
	return launch.ExitOK
}

// serveAgent runs an agent until the commands end. The first signal from leave
// asks the launcher to go on without this node, the second ends it. over is how
// the job ended, nil if the launcher did not say so.
func serveAgent(s setup, in *json.Decoder, stdout io.Writer, leave <-chan os.Signal) (over *overOrder, err error) {
	out := &reportWriter{enc: json.NewEncoder(stdout)}
	a, err := openAgent(s, out.write)
	if err == nil {
		defer a.close()
		err = obey(a, in, leave)
	}
	if err != nil {
		out.write(report{Broken: &brokenReport{err.Error()}})
		return nil, err
	}
	return a.over, out.lastWord()
}

// errLease ends an agent that the launcher must by now take for dead.
var errLease = errors.New("no word from the launcher within the lease")

// obey carries out commands until they end or the lease is over. The reader is
// left behind then: only the end of the process ends a read of stdin.
func obey(a *agent, in *json.Decoder, leave <-chan os.Signal) error {
	type read struct {
		c   command
		err error
	}
	commands := make(chan read)
	go func() {
		for {
			var r read
			r.err = in.Decode(&r.c)
			commands <- r
			if r.err != nil {
				return
			}
		}
	}()
	var expired, graceOver <-chan time.Time
	lease := a.setup.Lease * (leaseParts - 1) / leaseParts
	for {
		if lease > 0 {
			expired = time.After(lease)
		}
		select {
		case r := <-commands:
			if errors.Is(r.err, io.EOF) {
				return nil
			}
			if r.err != nil {
				return r.err
			}
			if err := a.do(r.c); err != nil {
				return err
			}
		case <-leave:
			if graceOver != nil {
				return nil
			}
			a.emit(report{Leaving: &leavingReport{}})
			graceOver = time.After(a.setup.Grace)
		case <-graceOver:
			return nil
		case <-expired:
			return errLease
		}
	}
}

// openAgent refuses a launcher that speaks otherwise.
func openAgent(s setup, emit func(report)) (*agent, error) {
	if s.Version != protocolVersion {
		return nil, fmt.Errorf("the launcher speaks version %d, this program version %d: install the same program on all hosts", s.Version, protocolVersion)
	}
	return newAgent(s, s.mark(), emit)
}

// reportWriter writes reports of several goroutines, each whole.
type reportWriter struct {
	mu     sync.Mutex
	enc    *json.Encoder
	broken error // what it said of its own end
}

func (w *reportWriter) write(r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Broken != nil {
		w.broken = errors.New(r.Broken.Cause)
	}
	_ = w.enc.Encode(r) // a launcher that is gone closes stdin too
}

// lastWord is why the agent was of no more use, nil when it was.
func (w *reportWriter) lastWord() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ddp/model/compute"
	"ddp/model/compute/timed"
	"ddp/model/train"
	"ddp/runtime/launch"
	"ddp/runtime/observe"
	"ddp/spmd"
)

// rankMain is the program in the role of one rank: everything comes from the
// environment and the inherited pipes.
func rankMain() int {
	place, _, err := launch.FromEnv()
	if err != nil {
		fmt.Fprintf(os.Stderr, "ddp: %v\n", err)
		return launch.ExitUsage
	}
	r := &rank{place: place, events: place.Events()}
	r.showName()
	return r.main()
}

// showName makes ps and top say which rank this is, not the name of the link
// that it was started by.
func (r *rank) showName() {
	_ = os.WriteFile("/proc/self/comm", fmt.Appendf(nil, "ddp rank %d", r.place.Rank), 0) // only a name
}

// rank is one rank's process.
type rank struct {
	place   launch.Rank // in the generation at hand; in the first one, as the environment says
	orders  *orders     // from the agent; nil: there is no agent, or it gives none
	control train.Control
	trainer atomic.Pointer[train.Trainer]
	backend compute.Backend
	spans   *timed.Spans // nil: nobody asked where the time goes

	generation atomic.Int64 // place's, for events from the background
	mu         sync.Mutex   // guards events: the loop and the snapshot writer both emit
	events     io.Writer
}

// main runs the job and turns how it ended into an error file and exit code.
func (r *rank) main() (code int) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			fmt.Fprintf(os.Stderr, "%v\n", err)
			r.place.Fail(err, r.step())
			code = launch.ExitFailed
		}
	}()
	stop := r.listen()
	defer stop()
	err := r.run(context.Background())
	if err == nil {
		return launch.ExitOK
	}
	fmt.Fprintf(os.Stderr, "ddp: %v\n", err)
	r.place.Fail(err, r.step())
	return exitCode(err)
}

// step is the last completed step, for error reports.
func (r *rank) step() int {
	if t := r.trainer.Load(); t != nil {
		return t.Step()
	}
	return 0
}

// listen turns signals into requests to the loop until the returned function is called.
func (r *rank) listen() (stop func()) {
	signals := make(chan os.Signal, 4)
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	go func() {
		defer close(done)
		for s := range signals {
			if s == syscall.SIGUSR1 {
				r.control.Snapshot()
			} else {
				r.control.Stop()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-done
	}
}

// emit sends an event to the launcher.
func (r *rank) emit(e observe.Event) {
	line, err := observe.Marshal(time.Now(), r.stamped(e))
	if err != nil {
		fmt.Fprintf(os.Stderr, "ddp: event %s: %v\n", e.Kind(), err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The launcher's end closes only when it dies, and then so do we.
	_, _ = r.events.Write(append(line, '\n'))
}

// stamped adds the generation, which the loop does not know.
func (r *rank) stamped(e observe.Event) observe.Event {
	if s, ok := e.(observe.Step); ok {
		s.Generation = int(r.generation.Load())
		return s
	}
	return e
}

// run does what the launcher asked for, in a world that it joins.
func (r *rank) run(ctx context.Context) error {
	text, err := r.place.Payload()
	if err != nil {
		return fmt.Errorf("read the launcher's request: %w", err)
	}
	p, err := readPayload(text)
	if err != nil {
		return err
	}
	switch {
	case p.Spans != "":
		r.spans = &timed.Spans{}
		return errors.Join(r.runJob(ctx, p.Train), r.keepSpans(p.Spans))
	case p.Train != nil:
		return r.runJob(ctx, p.Train)
	case p.Collectives:
		return r.once(ctx, r.collectives)
	case p.Bench != nil:
		return r.once(ctx, func(ctx context.Context, w *spmd.World) error { return r.benchCollectives(ctx, w, *p.Bench) })
	default:
		return usageError{errors.New("the launcher asked for nothing")}
	}
}

// warn sends a warning to the launcher.
func (r *rank) warn(format string, args ...any) {
	r.emit(observe.Warning{Message: fmt.Sprintf(format, args...)})
}

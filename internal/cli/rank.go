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
	"syscall"
	"time"

	"ddp/data"
	"ddp/jobs"
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
	place   launch.Rank
	control train.Control
	trainer *train.Trainer

	mu     sync.Mutex // guards events: the loop and the snapshot writer both emit
	events io.Writer
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
	if r.trainer == nil {
		return 0
	}
	return r.trainer.Step()
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
		s.Generation = r.place.Generation
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
	case p.Train != nil:
		return r.runJob(ctx, p.Train)
	case p.Collectives:
		return r.inWorld(ctx, func(w *spmd.World) error { return r.collectives(ctx, w) })
	case p.Bench != nil:
		return r.inWorld(ctx, func(w *spmd.World) error { return r.benchCollectives(ctx, w, *p.Bench) })
	default:
		return usageError{errors.New("the launcher asked for nothing")}
	}
}

// runJob opens the data before the rendezvous, so that bad data is an error of
// its own and not a peer's time-out.
func (r *rank) runJob(ctx context.Context, text []byte) error {
	job, err := jobs.Decode(text)
	if err != nil {
		return fmt.Errorf("read the job from the launcher: %w", err)
	}
	set, err := openData(job)
	if err != nil {
		return err
	}
	return r.inWorld(ctx, func(w *spmd.World) error { return r.train(ctx, job, set, w) })
}

// inWorld joins the other ranks, calls body and leaves.
func (r *rank) inWorld(ctx context.Context, body func(*spmd.World) error) (err error) {
	config, closeStore, err := r.place.Connect(ctx)
	if err != nil {
		return fmt.Errorf("rendezvous: %w", err)
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	world, err := spmd.Join(ctx, config)
	if err != nil {
		return fmt.Errorf("rendezvous: %w", err)
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	return body(world)
}

// train runs the job in a world that stands.
func (r *rank) train(ctx context.Context, job *jobs.Job, set *data.Set, world *spmd.World) (err error) {
	config, err := trainConfig(job, set)
	if err != nil {
		return err
	}
	resume, err := r.findResume(ctx, config, world)
	if err != nil {
		return err
	}
	backend, err := openBackend(ctx, job, world, resume)
	if err != nil {
		return err
	}
	defer backend.Close()
	if resume != nil && resume.ISA() != backend.ISA() && world.Rank() == 0 {
		r.emit(observe.Warning{Message: fmt.Sprintf("the snapshot was computed with %s, the run goes on with %s: it rounds differently from here on", resume.ISA(), backend.ISA())})
	}
	r.emit(observe.RankUp{Rank: world.Rank(), LocalRank: world.LocalRank(), Host: world.Host(), PID: os.Getpid(),
		Generation: r.place.Generation, WorldSize: world.Size(), Device: backend.Name(), ISA: backend.ISA()})
	r.trainer, err = train.New(ctx, config, world, backend, set, resume, r.emit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.trainer.Close()) }()
	out, err := r.trainer.Run(ctx, &r.control)
	if err != nil {
		return err
	}
	if out.Stopped {
		return exitError{launch.ExitSignal(syscall.SIGTERM)}
	}
	if world.Rank() == 0 {
		r.emit(observe.Done{Step: out.Step, Loss: out.Loss, ValLoss: out.ValLoss, TokensPerS: out.TokensPerS,
			ParamsSHA256: out.ParamsSHA256, Restarts: r.place.RestartCount})
	}
	return nil
}

// findResume looks for the snapshot to continue from and tells about bad ones.
func (r *rank) findResume(ctx context.Context, config train.Config, world *spmd.World) (*train.Resume, error) {
	if config.Snapshot.Dir == "" {
		return nil, nil
	}
	resume, bad, err := train.FindResume(ctx, world, config.Snapshot.Dir)
	if err != nil {
		return nil, err
	}
	for _, p := range bad {
		r.emit(observe.Warning{Message: fmt.Sprintf("snapshot passed over: %v", p)})
	}
	if resume != nil && world.Rank() == 0 {
		r.emit(observe.Resumed{Step: resume.Step(), Path: resume.Path()})
	}
	return resume, nil
}

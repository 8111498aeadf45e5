package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"ddp/data"
	"ddp/jobs"
	"ddp/model/train"
	"ddp/runtime/launch"
	"ddp/runtime/observe"
	"ddp/spmd"
)

// runJob trains through as many generations as it takes. Data is opened before
// the first, so that bad data is an error of its own and not a peer's time-out.
func (r *rank) runJob(ctx context.Context, text []byte) (err error) {
	job, err := jobs.Decode(text)
	if err != nil {
		return fmt.Errorf("read the job from the launcher: %w", err)
	}
	set, err := openData(job)
	if err != nil {
		return err
	}
	config, err := trainConfig(job, set)
	if err != nil {
		return err
	}
	config.Spans = r.spans
	defer r.closeBackend()
	if r.orders, err = r.openOrders(); err != nil {
		return err
	}
	if r.orders == nil {
		_, err := r.inGeneration(ctx, job, set, config)
		return err
	}
	defer r.orders.close()
	for {
		genCtx, err := r.takePlace(ctx)
		if errors.Is(err, errLeave) {
			return nil
		}
		if err != nil {
			return err
		}
		out, err := r.inGeneration(genCtx, job, set, config)
		again, status := r.goesOn(genCtx, out, err)
		if !again {
			return err
		}
		r.orders.report(status)
	}
}

// goesOn tells whether the rank is to wait for the next generation, and what it
// tells the agent meanwhile. A world that broke is no reason to end for a rank
// that holds the run's state.
func (r *rank) goesOn(ctx context.Context, out train.Outcome, err error) (bool, launch.Status) {
	if err == nil {
		return out.Paused, launch.Status{Paused: &launch.Paused{Generation: r.place.Generation, Step: out.Step}}
	}
	b := launch.Broken{Generation: r.place.Generation, Step: r.step(), Peer: -1, Cause: err.Error()}
	if errors.Is(context.Cause(ctx), errSuperseded) {
		return true, launch.Status{Broken: &b}
	}
	peer, late, broken := launch.BrokenBy(err)
	b.Peer, b.Late, b.Apart = peer, late, broken && launch.Apart(err)
	var meeting *meetingError
	if errors.As(err, &meeting) && !broken {
		b.Peer, broken = -1, true
	}
	if t := r.trainer.Load(); t == nil || !t.Holds() {
		return false, launch.Status{} // there is nothing to go on with: a new process is as good
	}
	if broken {
		fmt.Fprintf(os.Stderr, "ddp: %v; waiting for the next generation\n", err)
	}
	return broken, launch.Status{Broken: &b}
}

// meetingError says that the ranks of a generation did not find together.
type meetingError struct{ err error }

func (e *meetingError) Error() string { return "rendezvous: " + e.err.Error() }
func (e *meetingError) Unwrap() error { return e.err }

// once runs body in the one world that the environment describes.
func (r *rank) once(ctx context.Context, body func(context.Context, *spmd.World) error) error {
	return r.inWorld(ctx, spmd.DefaultTimeout, func(w *spmd.World) error { return body(ctx, w) })
}

// inWorld joins the other ranks, calls body and leaves.
func (r *rank) inWorld(ctx context.Context, timeout time.Duration, body func(*spmd.World) error) (err error) {
	place, closeStore, err := r.place.Connect(ctx)
	if err != nil {
		return &meetingError{err}
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	place.Timeout = timeout
	world, err := spmd.Join(ctx, place)
	if err != nil {
		return &meetingError{err}
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	return body(world)
}

// inGeneration trains in one generation's world.
func (r *rank) inGeneration(ctx context.Context, job *jobs.Job, set *data.Set, config train.Config) (out train.Outcome, err error) {
	r.generation.Store(int64(r.place.Generation))
	err = r.inWorld(ctx, job.Recovery.HangTimeout, func(w *spmd.World) (err error) {
		defer func() {
			if t := r.trainer.Load(); t != nil {
				err = errors.Join(err, t.Leave())
			}
		}()
		if err := r.enter(ctx, job, set, config, w); err != nil {
			return err
		}
		out, err = r.trainer.Load().Run(ctx, &r.control)
		return err
	})
	switch {
	case err != nil || out.Paused:
	case out.Stopped:
		err = exitError{launch.ExitSignal(syscall.SIGTERM)}
	case r.place.Rank == 0:
		r.emit(observe.Done{Step: out.Step, Loss: out.Loss, ValLoss: out.ValLoss, TokensPerS: out.TokensPerS,
			ParamsSHA256: out.ParamsSHA256, Restarts: r.place.RestartCount})
	}
	return out, err
}

// enter brings the rank, and what it holds, into a world.
func (r *rank) enter(ctx context.Context, job *jobs.Job, set *data.Set, config train.Config, w *spmd.World) error {
	held, err := train.Survey(ctx, w, r.trainer.Load())
	if err != nil {
		return err
	}
	var resume *train.Resume
	if !held {
		if resume, err = r.findResume(ctx, config, w); err != nil {
			return err
		}
	}
	if err := r.openBackend(ctx, job, w, resume); err != nil {
		return err
	}
	r.emit(observe.RankUp{Rank: w.Rank(), LocalRank: w.LocalRank(), Host: w.Host(), PID: os.Getpid(),
		Generation: r.place.Generation, WorldSize: w.Size(), Device: r.backend.Name(), ISA: r.backend.ISA()})
	t := r.trainer.Load()
	if t == nil {
		if t, err = train.New(config, r.backend, set, r.emit); err != nil {
			return err
		}
		r.trainer.Store(t)
	}
	entry, err := t.Enter(ctx, w, resume)
	if err != nil {
		return err
	}
	if w.Rank() == 0 && r.place.Generation > 0 {
		r.emit(observe.Regrouped{Generation: r.place.Generation, WorldSize: w.Size(), Step: entry.Step, From: string(entry.From)})
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
		r.warn("snapshot passed over: %v", p)
	}
	if resume != nil && world.Rank() == 0 {
		r.emit(observe.Resumed{Step: resume.Step(), Path: resume.Path()})
	}
	return resume, nil
}

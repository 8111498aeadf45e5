package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"ddp/runtime/observe"
	"ddp/runtime/snapshot"
	"ddp/spmd"
)

// saver takes snapshots in the background, over a communicator of its own.
type saver struct {
	t      *Trainer
	world  *spmd.World
	writer *snapshot.Writer
}

func newSaver(ctx context.Context, t *Trainer) (*saver, error) {
	w, err := t.world.Split(ctx, 0, t.world.Rank())
	if err != nil {
		return nil, fmt.Errorf("set up the snapshot communicator: %w", err)
	}
	writer, err := snapshot.NewWriter(t.cfg.Snapshot.Dir, snapshot.Keep{Newest: t.cfg.Snapshot.Keep, Best: t.cfg.Snapshot.KeepBest}, group{w})
	if err != nil {
		return nil, fmt.Errorf("open snapshot folder: %w", err)
	}
	s := &saver{t: t, world: w, writer: writer}
	if t.leads() {
		writer.OnWritten(func(done snapshot.Written) {
			t.emit(observe.Snapshot{Step: done.Step, Path: done.Path, Bytes: done.Bytes, StallMS: ms(done.Stall), WriteMS: ms(done.Write)})
		})
	}
	return s, nil
}

// save copies the state aside and returns; the writing goes on behind the next
// steps. A snapshot that could not be written is reported and training goes
// on: the older ones are untouched.
func (s *saver) save(ctx context.Context) error {
	content, err := s.t.content()
	if err != nil {
		return err
	}
	written, err := s.writer.Wait(ctx)
	s.t.unsaved = s.t.unsaved && written == nil
	_, e := s.writer.Begin(ctx, content)
	err = errors.Join(err, e)
	if ctx.Err() == nil {
		s.t.last.saved = s.t.step // an error is the one before's, or would come again
	}
	if err != nil {
		return s.complain(ctx, err)
	}
	return nil
}

// wait returns when the snapshot in flight is safe on disk. A failure is
// returned: nobody comes after it to try again.
func (s *saver) wait(ctx context.Context) error {
	if _, err := s.writer.Wait(ctx); err != nil {
		return fmt.Errorf("write the last snapshot (step %d): %w", s.t.last.saved, err)
	}
	return nil
}

// complain turns a failed snapshot into a warning, unless the run itself ends.
// Those that fail after it are not told of until one succeeds: a disk that is
// full stays full for a while.
func (s *saver) complain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.t.leads() && !s.t.unsaved {
		s.t.emit(observe.Warning{Message: fmt.Sprintf("%v; training goes on, and snapshots are tried again", err)})
	}
	s.t.unsaved = true
	return nil
}

// close waits for the snapshot in flight. One that fails now is owed.
func (s *saver) close() error {
	err := s.writer.Close()
	if err != nil {
		s.t.last.saved = owed
	}
	if e := s.world.Close(); err == nil {
		err = e
	}
	return err
}

// content describes the whole state; the writer copies this rank's share of it.
func (t *Trainer) content() (snapshot.Content, error) {
	saved := Saved{Job: t.cfg.Identity.Job, Data: t.cfg.Identity.Data}
	if !math.IsNaN(t.last.loss) {
		saved.Loss = &t.last.loss
	}
	extra, err := json.Marshal(saved)
	if err != nil {
		return snapshot.Content{}, fmt.Errorf("describe the job: %w", err)
	}
	sizes, err := configJSON(t.cfg.Model)
	if err != nil {
		return snapshot.Content{}, err
	}
	c := snapshot.Content{
		Meta: snapshot.Meta{Step: t.step, Epoch: t.epoch(), Seed: t.cfg.Seed, JobHash: t.cfg.Identity.JobHash,
			ModelHash: t.cfg.Identity.ModelHash, ISA: t.backend.ISA(), World: t.world.Size(), ValLoss: t.valLoss,
			Time: time.Now().UTC(), Extra: extra},
		Tensors: map[string][]snapshot.Tensor{modelFile: t.modelTensors(), optimizerFile: t.momentTensors()},
		Blobs:   map[string][]byte{configFile: sizes},
	}
	if t.cfg.Identity.Tokenizer != nil {
		c.Blobs[tokenizerFile] = t.cfg.Identity.Tokenizer
	}
	return c, nil
}

// owed in place of a snapshot's step says that it was lost on its way.
const owed = -1

// epoch is the epoch that the next step's first sample belongs to.
func (t *Trainer) epoch() int {
	epoch, _ := t.sampler.Index(int64(t.step) * int64(t.cfg.Batch))
	return epoch
}

// group lets the snapshot writer talk over a World.
type group struct{ w *spmd.World }

func (g group) Rank() int { return g.w.Rank() }
func (g group) Size() int { return g.w.Size() }
func (g group) Gather(ctx context.Context, b []byte) ([][]byte, error) {
	return spmd.GatherBytes(ctx, g.w, b, 0)
}
func (g group) Broadcast(ctx context.Context, b []byte) ([]byte, error) {
	return spmd.BroadcastBytes(ctx, g.w, b, 0)
}

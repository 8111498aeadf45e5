package train

import (
	"context"
	"fmt"
	"math"

	"ddp/runtime/observe"
	"ddp/spmd"
)

// Origin says where the state that a generation begins with came from.
type Origin string

// Origins.
const (
	FromStart    Origin = "start"    // initial parameters
	FromSnapshot Origin = "snapshot" // the one that Enter was given
	FromPeers    Origin = "peers"    // ranks of an earlier generation still held it
)

// Entry is how a rank entered a world.
type Entry struct {
	Step     int // completed by all
	From     Origin
	Received int // bytes of state that this rank got from peers
}

// standing is what a rank brings into a world. It travels as numbers.
type standing struct {
	holds      bool // parameters and moments
	step       int
	settled    bool // the evaluation and the snapshot after the step are done
	saved      int  // step of the newest snapshot that was not lost; -1: the last one was
	epoch      int  // of the step
	loss, lr   float64
	norm       float64
	valLoss    float64 // NaN: none yet
	stop, save bool    // the step's vote
}

const standingLen = 11

func (s standing) numbers() []float64 {
	return []float64{wish(s.holds), float64(s.step), wish(s.settled), float64(s.saved), float64(s.epoch),
		s.loss, s.lr, s.norm, s.valLoss, wish(s.stop), wish(s.save)}
}

func standingOf(x []float64) standing {
	return standing{holds: x[0] > 0, step: int(x[1]), settled: x[2] > 0, saved: int(x[3]), epoch: int(x[4]),
		loss: x[5], lr: x[6], norm: x[7], valLoss: x[8], stop: x[9] > 0, save: x[10] > 0}
}

// Survey tells every rank of w whether any of them still holds the state of the
// run, in which case no snapshot is needed. t is nil on a rank that has none.
func Survey(ctx context.Context, w *spmd.World, t *Trainer) (held bool, err error) {
	all, err := survey(ctx, w, t.standing())
	if err != nil {
		return false, err
	}
	for _, s := range all {
		held = held || s.holds
	}
	return held, nil
}

// standing is t's own; of no Trainer it is empty.
func (t *Trainer) standing() standing {
	if t == nil {
		return standing{valLoss: math.NaN()}
	}
	s := t.last
	s.holds, s.step, s.valLoss = t.entered, t.step, math.NaN()
	if t.valLoss != nil {
		s.valLoss = *t.valLoss
	}
	return s
}

// survey gathers the standings of all ranks.
func survey(ctx context.Context, w *spmd.World, mine standing) ([]standing, error) {
	all := make([]float64, standingLen*w.Size())
	if err := spmd.AllGather(ctx, w, all, mine.numbers()); err != nil {
		return nil, fmt.Errorf("compare what the ranks hold: %w", err)
	}
	out := make([]standing, w.Size())
	for r := range out {
		out[r] = standingOf(all[r*standingLen : (r+1)*standingLen])
	}
	return out, nil
}

// Enter makes t a rank of w; all ranks of w call it together. The state is the
// newest that any rank holds, given to those that lack it; where none does, that
// of resume; and with resume nil the initial one. A Trainer may enter one world
// after the other, with Leave between.
func (t *Trainer) Enter(ctx context.Context, w *spmd.World, resume *Resume) (Entry, error) {
	t.world = w
	all, err := survey(ctx, w, t.standing())
	if err != nil {
		return Entry{}, err
	}
	entry, err := t.takeState(ctx, all, resume)
	if err != nil {
		return entry, err
	}
	t.entered = true
	t.partials.place(w.Size(), w.Rank())
	if t.buckets, err = newBuckets(ctx, w, t.cfg.Shards, t.partials); err != nil {
		return entry, fmt.Errorf("set up gradient buckets: %w", err)
	}
	if t.cfg.Snapshot.enabled() {
		if t.saver, err = newSaver(ctx, t); err != nil {
			return entry, err
		}
	}
	t.untold = entry.From == FromPeers && t.leads()
	return entry, nil
}

// takeState brings every rank to the newest state there is.
func (t *Trainer) takeState(ctx context.Context, all []standing, resume *Resume) (Entry, error) {
	holders, lacking := newest(all)
	switch {
	case len(holders) > 0:
		n, err := t.share(ctx, holders, lacking)
		if err != nil {
			return Entry{}, fmt.Errorf("share the state of step %d: %w", all[holders[0]].step, err)
		}
		t.adopt(all, holders)
		return Entry{Step: t.step, From: FromPeers, Received: n}, nil
	case resume != nil:
		if err := t.load(resume); err != nil {
			return Entry{}, err
		}
		return Entry{Step: t.step, From: FromSnapshot}, nil
	}
	t.gpt.Init(t.cfg.Seed)
	t.last.settled = true
	return Entry{From: FromStart}, nil
}

// newest divides the ranks into those that hold the state of the last step that
// any rank completed, and the others.
func newest(all []standing) (holders, lacking []int) {
	last := -1
	for _, s := range all {
		if s.holds {
			last = max(last, s.step)
		}
	}
	for r, s := range all {
		if s.holds && s.step == last {
			holders = append(holders, r)
		} else if last >= 0 {
			lacking = append(lacking, r)
		}
	}
	return holders, lacking
}

// adopt takes from the holders' standings what goes with their state. What one
// of them has not done yet, all do again.
func (t *Trainer) adopt(all []standing, holders []int) {
	s := all[holders[0]]
	for _, r := range holders {
		s.settled = s.settled && all[r].settled
		s.saved = min(s.saved, all[r].saved)
	}
	t.last, t.step = s, s.step
	t.opt.SetSteps(s.step)
	t.valLoss = nil
	if !math.IsNaN(s.valLoss) {
		t.valLoss = &s.valLoss
	}
}

// Leave ends t's part in its world, in whatever state that is, and waits for
// work in the background. The state stays.
func (t *Trainer) Leave() error {
	var err error
	if t.buckets != nil {
		err = t.buckets.close()
		t.buckets = nil
	}
	if t.saver != nil {
		if e := t.saver.close(); err == nil {
			err = e
		}
		t.saver = nil
	}
	return err
}

// tellStep emits the last step's event; seconds is how long it took, 0: unknown.
func (t *Trainer) tellStep(seconds float64) {
	if t.step == 0 {
		return
	}
	e := observe.Step{Step: t.step, Epoch: t.last.epoch, Loss: t.last.loss, LR: t.last.lr, GradNorm: t.last.norm,
		StepMS: 1e3 * seconds, WorldSize: t.world.Size()}
	if seconds > 0 {
		e.TokensPerS = float64(t.cfg.Batch*t.cfg.Model.BlockSize) / seconds
	}
	t.emit(e)
}

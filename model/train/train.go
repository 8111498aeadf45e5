// Package train is the loop of one rank: batch, forward and backward a shard at
// a time, gradient buckets reduced in the background, optimizer, evaluation,
// snapshot.
//
// What a run computes depends on Config and the data alone, never on the number
// of ranks: a step's batch is cut into Config.Shards logical shards, each shard
// is computed with the same shapes whoever computes it, and sums over shards
// follow one canonical binary tree (see spmd.Cover).
package train

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"ddp/data"
	"ddp/model"
	"ddp/model/compute"
	"ddp/model/compute/timed"
	"ddp/runtime/observe"
	"ddp/runtime/snapshot"
	"ddp/spmd"
)

// Config describes a run. It is the same on every rank.
type Config struct {
	Model     model.Config
	Optimizer model.OptimizerConfig
	Schedule  model.Schedule

	Batch    int // sequences of a step, whole world; a multiple of Shards
	Shards   int // logical shards of a step; a power of two, at least the world's size
	MaxSteps int // optimizer steps of the whole run
	Seed     uint64

	EvalEvery   int // steps between evaluations; 0: only at the end
	EvalWindows int // validation windows of an evaluation; 0: all

	Snapshot Cadence
	// Identity goes into every snapshot, so that a later run can tell whether
	// it continues the same job.
	Identity Identity

	Spans *timed.Spans // gets each step and what it waits for; nil: nothing does
}

// Cadence says when snapshots are taken. Zero fields mean never.
type Cadence struct {
	Dir         string
	EverySteps  int
	EveryEpochs int
	Every       time.Duration
	Keep        int  // newest ones
	KeepBest    bool // and the one with the least validation loss
}

// enabled reports whether the run has anywhere to put snapshots.
func (c Cadence) enabled() bool { return c.Dir != "" }

// Identity is what a snapshot says about the job that took it.
type Identity struct {
	JobHash   string
	ModelHash string
	Job       []byte // the whole job, as JSON
	Tokenizer []byte // nil for generated data
	Data      string // fingerprint of the training and validation symbols
}

// Control carries requests from outside into the loop. Its methods may be
// called from any goroutine; the ranks agree on them at the end of a step.
type Control struct {
	stop     atomic.Bool
	snapshot atomic.Bool
	pause    atomic.Bool
}

// Stop asks all ranks to take a snapshot and leave after the current step.
func (c *Control) Stop() { c.stop.Store(true) }

// Snapshot asks all ranks for a snapshot after the current step.
func (c *Control) Snapshot() { c.snapshot.Store(true) }

// Pause asks all ranks to return from Run after the current step, ready to Enter
// another world.
func (c *Control) Pause() { c.pause.Store(true) }

// Resume takes a Pause back.
func (c *Control) Resume() { c.pause.Store(false) }

// Outcome is how Run ended.
type Outcome struct {
	Step         int
	Stopped      bool    // a Stop request ended the run before MaxSteps
	Paused       bool    // a Pause request did; the rest is not filled in
	Loss         float64 // of the last step; NaN when the run has none
	ValLoss      *float64
	TokensPerS   float64
	ParamsSHA256 string
}

// Trainer holds one rank's share of a run. It is used by one goroutine.
type Trainer struct {
	cfg     Config
	world   *spmd.World
	backend compute.Backend
	set     *data.Set
	gpt     *model.GPT
	opt     *model.Optimizer
	sampler data.Sampler
	emit    func(observe.Event)

	partials *partials
	buckets  *buckets
	saver    *saver

	entered      bool // the buffers hold the state of a run
	step         int  // completed optimizer steps
	last         standing
	untold       bool // the rank that should have told of the last step may have died before it could
	valLoss      *float64
	cadence      *cadence
	trainTime    time.Duration
	trainedSteps int
	progress     atomic.Uint64
	unsaved      bool // no snapshot has succeeded since one failed that was told of
}

// New builds the model. Call Enter before anything else. emit is called from
// the training goroutine and from the snapshot writer; it must be safe for
// concurrent use.
func New(cfg Config, b compute.Backend, set *data.Set, emit func(observe.Event)) (*Trainer, error) {
	perShard := cfg.Batch / cfg.Shards
	gpt, err := model.New(cfg.Model, b, perShard)
	if err != nil {
		return nil, fmt.Errorf("build model: %w", err)
	}
	opt, err := model.NewOptimizer(cfg.Model, b, cfg.Optimizer)
	if err != nil {
		return nil, fmt.Errorf("build optimizer: %w", err)
	}
	return &Trainer{cfg: cfg, backend: b, set: set, gpt: gpt, opt: opt, emit: emit,
		sampler: data.NewSampler(set.TrainLen(), cfg.Seed), last: standing{loss: math.NaN()},
		cadence:  newCadence(cfg.Snapshot, cfg.Batch, set.TrainLen(), time.Now()),
		partials: newPartials(b, cfg.Model.FlatLen(), cfg.Shards)}, nil
}

// Step is the number of optimizer steps that the parameters have seen.
func (t *Trainer) Step() int { return t.step }

// Holds reports whether t has the state of a run, which a world can go on with.
func (t *Trainer) Holds() bool { return t.entered }

// Progress grows with every shard, evaluation group and step that is done. It
// may be called from any goroutine.
func (t *Trainer) Progress() uint64 { return t.progress.Load() }

// Model is the model being trained, for sampling once Run has returned.
func (t *Trainer) Model() *model.GPT { return t.gpt }

// leads reports whether this rank speaks for all of them.
func (t *Trainer) leads() bool { return t.world.Rank() == 0 }

var _ snapshot.Group = group{}

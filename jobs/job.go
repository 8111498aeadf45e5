// Package jobs reads job files: strict TOML that says what to train, on what
// and how. One table, Keys, holds every key's type, default, range and meaning;
// reading, defaults, comparison with a snapshot and documentation follow it.
//
// A file's problems are found all at once and each is one clear line with its
// place; see Problems.
package jobs

import "time"

// Job is a complete job: Load and Parse have put in every default, including
// those that depend on other keys. Keys tells what each field means.
type Job struct {
	Name      string
	Device    string // "auto", "cpu" or "cuda"
	Cluster   Cluster
	Recovery  Recovery
	Model     Model
	Data      Data
	Train     Train
	Optimizer Optimizer
	Snapshot  Snapshot
	Sample    Sample
}

// Cluster is table [cluster]: where the ranks run.
type Cluster struct {
	Ranks    int    // on this machine, or on each node that doesn't say; 0: auto
	Nodes    []Node // none: this machine alone
	MinNodes int    // at least 1
	MaxNodes int    // at least MinNodes

	Listen        string        // HOST:PORT or :PORT; "": nodes cannot join
	Discover      string        // for a shell; "": none
	DiscoverEvery time.Duration // at least a second
}

// Grows tells whether nodes may come that the job file does not list.
func (c Cluster) Grows() bool { return c.Listen != "" || c.Discover != "" }

// Node is one machine of the cluster.
type Node struct {
	Host  string
	Ranks int   // 0: len(GPUs), or else Cluster.Ranks
	GPUs  []int // nil: not said
}

// Recovery is table [recovery]: what happens after a failure.
type Recovery struct {
	Mode        string        // "live" or "restart"
	MaxRestarts int           // within Window
	Window      time.Duration // at least a second
	Grace       time.Duration // between asking a rank to end and killing it
	HangTimeout time.Duration // at least a second
}

// Model is table [model]. The sizes are those of the preset when there is one.
type Model struct {
	Preset    string // "" when the sizes were given
	Layers    int
	Heads     int // divides Embed
	Embed     int
	BlockSize int // tokens
	Tied      bool
	Bias      bool
	GELU      string  // "tanh" or "exact"
	Dropout   float64 // what the three below were unless given
	EmbdDrop  float64
	ResidDrop float64
	AttnDrop  float64
}

// Data is table [data].
type Data struct {
	Source    string  // "text", "adder" or "sort"
	Path      string  // text: relative to the working directory
	Tokenizer string  // text: "char", "byte" or a path
	Split     float64 // text: share for training, in (0, 1]
	Stride    int     // text: tokens; 0: the block size
	Digits    int     // adder
	Length    int     // sort
	Symbols   int     // sort
}

// Train is table [train].
type Train struct {
	Batch       int // sequences a step, of all ranks together
	Shards      int // a power of two that divides Batch
	MaxSteps    int // without meaning when MaxEpochs > 0
	MaxEpochs   int // 0: MaxSteps counts
	EvalEvery   int // steps; 0: only at the end
	EvalWindows int // 0: all
	Precision   string
	Threads     int // a rank; 0: its share of the cores
	Seed        uint64
}

// Optimizer is table [optimizer]: AdamW and its schedule.
type Optimizer struct {
	LR          float64
	MinLR       float64
	Betas       [2]float64
	Eps         float64
	WeightDecay float64
	Decay       string  // "mingpt" or "matrices"
	GradClip    float64 // 0: off
	Schedule    string  // "constant", "linear" or "cosine"
	WarmupSteps int
	DecaySteps  int // 0: the run's steps
}

// Snapshot is table [snapshot]. Cadences of 0 mean never.
type Snapshot struct {
	Dir         string // "": no snapshots
	EverySteps  int
	EveryEpochs int
	Every       time.Duration
	Keep        int // at least 1
	Best        bool
}

// Sample is table [sample]: the text printed when a run ends.
type Sample struct {
	Prompt      string // "": none is printed
	MaxTokens   int
	Temperature float64 // 0: greedy
	TopK        int     // 0: off
	TopP        float64 // 1: off
}

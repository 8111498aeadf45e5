package jobs

import (
	"math"
	"slices"
	"time"

	"ddp/data"
	"ddp/model"
)

// Resume says what becomes of a run that finds a snapshot of a job in which the
// key had another value.
type Resume int

const (
	// Free keys don't change what is computed: the change is not mentioned.
	Free Resume = iota
	// Reported keys may change: the run goes on with the new value and says so.
	Reported
	// MustAgree keys may not change: the run is refused.
	MustAgree
)

// Key describes one key of the job file.
type Key struct {
	Name    string // "train.batch"; without a point: above all tables
	Type    string // "integer", "number", "string", ...
	Default string // as TOML; "" when the key is required or its default depends on others
	Derived string // how the default is found when Default is ""
	Range   string // the values it takes; "" for any
	Doc     string // what it is, in a line
	Resume  Resume

	kind    kind
	aliases []string // names that other trainers have for it
}

// Keys is every key of the job file, in the order of its tables.
func Keys() []Key {
	return slices.Clone(keyTable)
}

// Limits that keep sizes within what the arithmetic of the trainer can hold.
const (
	maxBatch  = 1 << 20
	maxShards = 1 << 16
	maxSteps  = math.MaxUint32 // dropout's counter has 32 bits for the step
	maxBlock  = 1 << 20
)

const never = "a cadence of 0 means never"

// keyTable is filled in init, because what reads a key looks up other keys.
var keyTable []Key

func init() {
	keyTable = slices.Concat(topKeys(), modelKeys(), dataKeys(), trainKeys(), optimizerKeys(), snapshotKeys())
	for i := range keyTable {
		keyTable[i].Type, keyTable[i].Range = keyTable[i].kind.name, keyTable[i].kind.limits
	}
}

func topKeys() []Key {
	return []Key{
		{Name: "name", Derived: "the file's name without .toml", Doc: "the job's name, in messages and folders",
			kind: str("letters, digits and ._-, not first a sign", checkName, func(j *Job) *string { return &j.Name })},
		{Name: "device", Default: `"auto"`, Doc: "what computes; auto: the CPU, until GPUs are supported",
			kind: choice([]string{"auto", "cpu"}, map[string]string{"cuda": "cuda is not available yet; use cpu"}, func(j *Job) *string { return &j.Device })},

		{Name: "cluster.ranks", Default: `"auto"`, Resume: Reported, aliases: []string{"nproc_per_node", "world_size"},
			Doc:  "ranks on this machine, or on each node that says neither ranks nor gpus; auto: one a GPU, or one a core pair",
			kind: ranks(func(j *Job) *int { return &j.Cluster.Ranks })},
		{Name: nodesKey, Default: "[]", Doc: "the machines; none: this one", kind: nodes()},
		{Name: "cluster.min_nodes", Derived: "as many as nodes are listed, at least 1", Doc: "fewest nodes that train",
			kind: integer(1, maxNodes, func(j *Job) *int { return &j.Cluster.MinNodes })},
		{Name: "cluster.max_nodes", Derived: "as many as nodes are listed, at least min_nodes; with listen or discover any number", Doc: "most nodes that train",
			kind: integer(1, maxNodes, func(j *Job) *int { return &j.Cluster.MaxNodes })},
		{Name: "cluster.listen", Default: `""`, Doc: "address on which nodes may join (`ddp join`) while the job runs; empty: none may",
			kind: str("HOST:PORT or :PORT", checkListen, func(j *Job) *string { return &j.Cluster.Listen })},
		{Name: "cluster.discover", Default: `""`, Doc: "shell command that prints the nodes there are, one `HOST` or `HOST RANKS` a line; nodes come and go with its answer; empty: none",
			kind: str("", anyText, func(j *Job) *string { return &j.Cluster.Discover })},
		{Name: "cluster.discover_every", Default: `"30s"`, Doc: "how often cluster.discover is asked",
			kind: duration(time.Second, "", func(j *Job) *time.Duration { return &j.Cluster.DiscoverEvery })},

		{Name: "recovery.mode", Default: `"live"`, Doc: "after a failure; live: the ranks that survive go on and give a new one their state; restart: all ranks start again from the last good snapshot",
			kind: choice([]string{"live", "restart"}, nil, func(j *Job) *string { return &j.Recovery.Mode })},
		{Name: "recovery.max_restarts", Default: "10", Doc: "failures within the window after which the job gives up",
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Recovery.MaxRestarts })},
		{Name: "recovery.window", Default: `"1h"`, Doc: "how long a restart counts",
			kind: duration(time.Second, "", func(j *Job) *time.Duration { return &j.Recovery.Window })},
		{Name: "recovery.grace", Default: `"30s"`, Doc: "how long a rank has to end on its own before it is killed",
			kind: duration(0, "at once", func(j *Job) *time.Duration { return &j.Recovery.Grace })},
		{Name: "recovery.hang_timeout", Default: `"2m"`, Doc: "how long a rank may wait for another, or complete nothing, before that one counts as hung and is replaced", aliases: []string{"timeout"},
			kind: duration(time.Second, "", func(j *Job) *time.Duration { return &j.Recovery.HangTimeout })},
	}
}

func modelKeys() []Key {
	return []Key{
		{Name: "model.preset", Default: `"gpt-mini"`, Doc: "sizes by name; instead of n_layer, n_head and n_embd",
			aliases: []string{"model_type"}, kind: choice(model.Presets(), nil, func(j *Job) *string { return &j.Model.Preset })},
		{Name: "model.n_layer", Derived: "the preset's", Resume: MustAgree, Doc: "transformer blocks", aliases: []string{"layers", "n_layers"},
			kind: integer(1, 1024, func(j *Job) *int { return &j.Model.Layers })},
		{Name: "model.n_head", Derived: "the preset's", Resume: MustAgree, Doc: "attention heads; divides n_embd", aliases: []string{"heads", "n_heads"},
			kind: integer(1, 1024, func(j *Job) *int { return &j.Model.Heads })},
		{Name: "model.n_embd", Derived: "the preset's", Resume: MustAgree, Doc: "channels", aliases: []string{"embed", "d_model", "hidden_size"},
			kind: integer(1, 1<<16, func(j *Job) *int { return &j.Model.Embed })},
		{Name: "model.block_size", Derived: "128 for text; the length of the sequences of adder and sort", Resume: MustAgree,
			Doc: "tokens that the model sees at once", aliases: []string{"block", "context_length", "seq_len", "n_ctx", "n_positions"},
			kind: integer(1, maxBlock, func(j *Job) *int { return &j.Model.BlockSize })},
		{Name: "model.tied", Default: "true", Resume: MustAgree, Doc: "the output head shares the token embedding's weights",
			aliases: []string{"tie_word_embeddings"}, kind: boolean(func(j *Job) *bool { return &j.Model.Tied })},
		{Name: "model.bias", Default: "true", Resume: MustAgree, Doc: "biases in linear and normalisation layers",
			kind: boolean(func(j *Job) *bool { return &j.Model.Bias })},
		{Name: "model.gelu", Default: `"tanh"`, Resume: MustAgree, Doc: "form of the activation", aliases: []string{"activation", "activation_function"},
			kind: choice([]string{"tanh", "exact"}, nil, func(j *Job) *string { return &j.Model.GELU })},
		{Name: "model.dropout", Default: "0.1", Resume: Free, Doc: "what embd_pdrop, resid_pdrop and attn_pdrop are unless given",
			kind: number(fraction, func(j *Job) *float64 { return &j.Model.Dropout })},
		{Name: "model.embd_pdrop", Derived: "model.dropout", Resume: Reported, Doc: "dropout after the embedding",
			kind: number(fraction, func(j *Job) *float64 { return &j.Model.EmbdDrop })},
		{Name: "model.resid_pdrop", Derived: "model.dropout", Resume: Reported, Doc: "dropout before each residual sum",
			kind: number(fraction, func(j *Job) *float64 { return &j.Model.ResidDrop })},
		{Name: "model.attn_pdrop", Derived: "model.dropout", Resume: Reported, Doc: "dropout of attention weights",
			kind: number(fraction, func(j *Job) *float64 { return &j.Model.AttnDrop })},
	}
}

func dataKeys() []Key {
	return []Key{
		{Name: "data.source", Default: `"text"`, Resume: MustAgree, Doc: "text files, or one of minGPT's tasks: add numbers, sort symbols",
			kind: choice([]string{"text", "adder", "sort"}, map[string]string{"tokens": `source "tokens" is not available yet; use text`},
				func(j *Job) *string { return &j.Data.Source })},
		{Name: "data.path", Derived: "required for text", Resume: MustAgree, aliases: []string{"file", "dataset"},
			Doc:  "text: a file, a folder (its .txt and .md files) or a pattern, from the working directory",
			kind: str("not empty", checkPath, func(j *Job) *string { return &j.Data.Path })},
		{Name: "data.tokenizer", Default: `"char"`, Resume: MustAgree, Doc: "text: one token a character or a byte, or the path of a tokenizer: a folder or file of a byte-level BPE (`ddp tokenizer`, tokenizer.json, vocab.json with merges.txt)",
			kind: str(`"char", "byte" or a path`, checkTokenizer, func(j *Job) *string { return &j.Data.Tokenizer })},
		{Name: "data.split", Default: "0.9", Resume: MustAgree, Doc: "text: the leading share that trains, the rest validates; 1: no validation",
			aliases: []string{"train_split"}, kind: number(share, func(j *Job) *float64 { return &j.Data.Split })},
		{Name: "data.stride", Default: "0", Resume: MustAgree, Doc: "text: tokens from one training window to the next; 0: block_size",
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Data.Stride })},
		{Name: "data.digits", Default: "2", Resume: MustAgree, Doc: "adder: digits of each number", aliases: []string{"ndigit"},
			kind: integer(data.MinDigits, data.MaxDigits, func(j *Job) *int { return &j.Data.Digits })},
		{Name: "data.length", Default: "6", Resume: MustAgree, Doc: "sort: symbols of a sequence",
			kind: integer(data.MinLength, data.MaxLength, func(j *Job) *int { return &j.Data.Length })},
		{Name: "data.symbols", Default: "3", Resume: MustAgree, Doc: "sort: how many different symbols there are", aliases: []string{"num_digits"},
			kind: integer(data.MinSymbols, data.MaxSymbols, func(j *Job) *int { return &j.Data.Symbols })},
	}
}

func trainKeys() []Key {
	return []Key{
		{Name: "train.batch", Default: "64", Resume: MustAgree, Doc: "sequences a step, of all ranks together", aliases: []string{"batch_size", "global_batch_size"},
			kind: integer(1, maxBatch, func(j *Job) *int { return &j.Train.Batch })},
		{Name: "train.shards", Derived: "the largest power of two up to 8 that divides batch", Resume: MustAgree,
			Doc:  "logical parts of a batch, each summed alike whichever rank has it; divides batch",
			kind: powerOfTwo(maxShards, func(j *Job) *int { return &j.Train.Shards })},
		{Name: "train.max_steps", Default: "1000", Resume: Reported, Doc: "steps of the run; instead of max_epochs", aliases: []string{"max_iters", "steps", "iterations"},
			kind: integer(0, maxSteps, func(j *Job) *int { return &j.Train.MaxSteps })},
		{Name: "train.max_epochs", Derived: "max_steps counts", Resume: Reported, Doc: "passes over the training windows; instead of max_steps", aliases: []string{"epochs"},
			kind: integer(1, maxSteps, func(j *Job) *int { return &j.Train.MaxEpochs })},
		{Name: "train.eval_every", Default: "100", Doc: "steps between validations; 0: only at the end", aliases: []string{"eval_interval"},
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Train.EvalEvery })},
		{Name: "train.eval_windows", Default: "0", Doc: "validation windows read each time; 0: all", aliases: []string{"eval_iters"},
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Train.EvalWindows })},
		{Name: "train.precision", Default: `"auto"`, Resume: Reported, Doc: "of the arithmetic; auto: float32", aliases: []string{"dtype", "use_amp"},
			kind: choice([]string{"auto", "float32"}, map[string]string{"bfloat16": "bfloat16 is not available yet; use float32"},
				func(j *Job) *string { return &j.Train.Precision })},
		{Name: "train.threads", Default: "0", Doc: "compute threads of a rank; 0: its share of the cores",
			kind: integer(0, 1024, func(j *Job) *int { return &j.Train.Threads })},
		{Name: "train.seed", Default: "1337", Resume: MustAgree, Doc: "of initial weights, order of the data and dropout",
			kind: seed(func(j *Job) *uint64 { return &j.Train.Seed })},
	}
}

func optimizerKeys() []Key {
	return []Key{
		{Name: "optimizer.lr", Default: "3e-4", Resume: Reported, Doc: "learning rate at its height", aliases: []string{"learning_rate"},
			kind: number(positive, func(j *Job) *float64 { return &j.Optimizer.LR })},
		{Name: "optimizer.min_lr", Default: "0", Resume: Reported, Doc: "where linear and cosine schedules end",
			kind: number(notNegative, func(j *Job) *float64 { return &j.Optimizer.MinLR })},
		{Name: "optimizer.betas", Default: "[0.9, 0.95]", Resume: Reported, Doc: "AdamW's decay of the two moments", aliases: []string{"beta1", "beta2"},
			kind: pair(fraction, func(j *Job) *[2]float64 { return &j.Optimizer.Betas })},
		{Name: "optimizer.eps", Default: "1e-8", Resume: Reported, Doc: "AdamW's guard against division by zero",
			kind: number(positive, func(j *Job) *float64 { return &j.Optimizer.Eps })},
		{Name: "optimizer.weight_decay", Default: "0.1", Resume: Reported, Doc: "AdamW's weight decay; 0: none",
			kind: number(notNegative, func(j *Job) *float64 { return &j.Optimizer.WeightDecay })},
		{Name: "optimizer.decay", Default: `"mingpt"`, Resume: Reported,
			Doc:  "which parameters decay; mingpt: weights of linear layers; matrices: all of 2 or more dimensions",
			kind: choice([]string{"mingpt", "matrices"}, nil, func(j *Job) *string { return &j.Optimizer.Decay })},
		{Name: "optimizer.grad_clip", Default: "1.0", Resume: Reported, Doc: "largest norm of the gradient; 0: any", aliases: []string{"grad_norm_clip", "max_norm"},
			kind: number(notNegative, func(j *Job) *float64 { return &j.Optimizer.GradClip })},
		{Name: "optimizer.schedule", Default: `"constant"`, Resume: Reported, Doc: "of the learning rate after the warm-up", aliases: []string{"lr_schedule", "scheduler"},
			kind: choice([]string{"constant", "linear", "cosine"}, nil, func(j *Job) *string { return &j.Optimizer.Schedule })},
		{Name: "optimizer.warmup_steps", Default: "0", Resume: Reported, Doc: "steps in which the learning rate rises", aliases: []string{"warmup", "warmup_iters"},
			kind: integer(0, maxSteps, func(j *Job) *int { return &j.Optimizer.WarmupSteps })},
		{Name: "optimizer.decay_steps", Default: "0", Resume: Reported, Doc: "step at which the schedule reaches min_lr; 0: the run's last", aliases: []string{"lr_decay_iters"},
			kind: integer(0, maxSteps, func(j *Job) *int { return &j.Optimizer.DecaySteps })},
	}
}

func snapshotKeys() []Key {
	return []Key{
		{Name: "snapshot.dir", Derived: "runs/ and the job's name", Doc: "folder of the snapshots, from the working directory; empty: none are taken", aliases: []string{"snapshot_path", "out_dir"},
			kind: str("", checkDir, func(j *Job) *string { return &j.Snapshot.Dir })},
		{Name: "snapshot.every_steps", Derived: "100, or 0 when every_epochs or every is given", Doc: "steps between snapshots; " + never, aliases: []string{"save_every"},
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Snapshot.EverySteps })},
		{Name: "snapshot.every_epochs", Default: "0", Doc: "epochs between snapshots; " + never,
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Snapshot.EveryEpochs })},
		{Name: "snapshot.every", Default: `"0s"`, Doc: "time between snapshots; " + never,
			kind: duration(time.Second, "never", func(j *Job) *time.Duration { return &j.Snapshot.Every })},
		{Name: "snapshot.keep", Default: "3", Doc: "how many of the newest are kept",
			kind: integer(1, math.MaxInt, func(j *Job) *int { return &j.Snapshot.Keep })},
		{Name: "snapshot.best", Default: "true", Doc: "the one of the lowest validation loss is kept as well",
			kind: boolean(func(j *Job) *bool { return &j.Snapshot.Best })},

		{Name: "sample.prompt", Default: `""`, Doc: "text that the sample at the end of a run goes on from; empty: no sample",
			kind: str("", anyText, func(j *Job) *string { return &j.Sample.Prompt })},
		{Name: "sample.max_tokens", Default: "200", Doc: "length of the sample",
			kind: integer(0, maxBlock, func(j *Job) *int { return &j.Sample.MaxTokens })},
		{Name: "sample.temperature", Default: "0.8", Doc: "above 1: more varied; 0: always the likeliest token",
			kind: number(notNegative, func(j *Job) *float64 { return &j.Sample.Temperature })},
		{Name: "sample.top_k", Default: "0", Doc: "draw among so many likeliest tokens; 0: all",
			kind: integer(0, math.MaxInt, func(j *Job) *int { return &j.Sample.TopK })},
		{Name: "sample.top_p", Default: "1.0", Doc: "draw among the likeliest tokens that have this share of the probability; 1: all",
			kind: number(share, func(j *Job) *float64 { return &j.Sample.TopP })},
	}
}

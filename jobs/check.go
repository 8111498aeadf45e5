package jobs

import (
	"fmt"
	"slices"
)

// check judges how the keys fit together. After broken TOML it does not: what
// is missing may stand on the line that could not be read.
func (r *reading) check() {
	if slices.ContainsFunc(r.docs, func(d *document) bool { return d.broken }) {
		return
	}
	r.checkModel()
	r.checkData()
	r.checkBatch()
	r.checkCluster()
	r.checkSchedule()
}

func (r *reading) checkModel() {
	m := r.job.Model
	if r.hasAny(sizeKeys...) && !r.has("model.preset") {
		r.checkSizes()
	}
	if m.Heads > 0 && m.Embed%m.Heads != 0 {
		r.fail([]string{"model.n_head", "model.n_embd"}, fmt.Sprintf("%d does not divide n_embd = %d", m.Heads, m.Embed), "")
	}
}

// checkSizes wants all three sizes or none.
func (r *reading) checkSizes() {
	given := sizeKeys[slices.IndexFunc(sizeKeys, r.has)]
	for _, key := range sizeKeys {
		if !r.has(key) {
			_, leaf := splitKey(given)
			r.fail([]string{key, given}, "is missing beside "+leaf, "give n_layer, n_head and n_embd, or a preset")
		}
	}
}

// sourceKeys tells which keys mean something to one source only.
var sourceKeys = []struct {
	source string
	keys   []string
}{
	{"text", []string{"data.path", "data.tokenizer", "data.split", "data.stride"}},
	{"adder", []string{"data.digits"}},
	{"sort", []string{"data.length", "data.symbols"}},
}

func (r *reading) checkData() {
	source := r.job.Data.Source
	for _, of := range sourceKeys {
		for _, key := range of.keys {
			if of.source != source && r.has(key) && !r.bad["data.source"] {
				r.fail([]string{key}, fmt.Sprintf("means nothing to source %q", source), fmt.Sprintf("it is for source %q", of.source))
			}
		}
	}
	if source == "text" && !r.has("data.path") {
		r.failPath()
	}
	if needed := r.blockSize(); source != "text" && r.job.Model.BlockSize != needed {
		r.fail([]string{"model.block_size", "data.source", "data.digits", "data.length"},
			fmt.Sprintf("is %d, but the sequences of source %q are %d long", r.job.Model.BlockSize, source, needed), "leave it out")
	}
}

// failPath points at [data], where the path belongs, if there is such a table.
func (r *reading) failPath() {
	if r.bad["data.source"] {
		return
	}
	at := place{file: r.name, line: 1, col: 1}
	if header, seen := r.docs[0].tables["data"]; seen {
		at = header
	}
	r.found.add(at, "data.path", `is needed for source "text"`, "name a file, a folder or a pattern")
}

func (r *reading) checkBatch() {
	t := r.job.Train
	if t.Batch%t.Shards != 0 {
		r.fail([]string{"train.shards", "train.batch"}, fmt.Sprintf("%d does not divide batch = %d", t.Shards, t.Batch), "")
	}
}

func (r *reading) checkCluster() {
	c := r.job.Cluster
	if c.MinNodes > c.MaxNodes {
		r.fail([]string{"cluster.min_nodes", "cluster.max_nodes"}, fmt.Sprintf("%d is above max_nodes = %d", c.MinNodes, c.MaxNodes), "")
	}
	if ranks, shards := r.job.MaxRanks(), r.job.Train.Shards; ranks > shards {
		r.fail([]string{r.ranksKey(), "train.shards", "train.batch"},
			fmt.Sprintf("%d ranks cannot share %d shards", ranks, shards), "use fewer ranks, or more train.shards (a power of two that divides train.batch)")
	}
	hasGPUs := slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.GPUs != nil })
	if r.job.Device == "cpu" && hasGPUs {
		r.fail([]string{nodesKey, "device"}, `lists gpus, but device is "cpu"`, "give ranks instead")
	}
}

// ranksKey is the key that the number of ranks comes from.
func (r *reading) ranksKey() string {
	says := func(n Node) bool { return n.Ranks > 0 || n.GPUs != nil }
	if slices.ContainsFunc(r.job.Cluster.Nodes, says) {
		return nodesKey
	}
	return "cluster.ranks"
}

func (r *reading) checkSchedule() {
	o, t := r.job.Optimizer, r.job.Train
	if o.MinLR > o.LR {
		r.fail([]string{"optimizer.min_lr", "optimizer.lr"}, fmt.Sprintf("%v is above lr = %v", o.MinLR, o.LR), "")
	}
	if o.DecaySteps > 0 && o.WarmupSteps > o.DecaySteps {
		r.fail([]string{"optimizer.warmup_steps", "optimizer.decay_steps"}, fmt.Sprintf("%d is above decay_steps = %d", o.WarmupSteps, o.DecaySteps), "")
	}
	if t.MaxEpochs == 0 && o.WarmupSteps > t.MaxSteps && !r.shortened() {
		r.fail([]string{"optimizer.warmup_steps", "train.max_steps"}, fmt.Sprintf("%d is above max_steps = %d", o.WarmupSteps, t.MaxSteps), "")
	}
}

// shortened reports whether a flag cuts short the run that the file describes:
// a trial of a few steps that ends in the warm-up is no mistake.
func (r *reading) shortened() bool {
	return r.inFlag([]string{"train.max_steps"}) && !r.inFlag([]string{"optimizer.warmup_steps"})
}

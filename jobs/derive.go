package jobs

import (
	"slices"

	"ddp/data"
	"ddp/model"
	"ddp/model/compute"
)

// MaxRanks is the most ranks that the job can run at once, or 0 when some
// node's number is "auto" and only the machine can tell.
func (j *Job) MaxRanks() int {
	c := j.Cluster
	if len(c.Nodes) == 0 {
		return c.Ranks
	}
	counts := make([]int, len(c.Nodes))
	for i, n := range c.Nodes {
		counts[i] = c.RanksOf(n)
		if counts[i] == 0 {
			return 0
		}
	}
	slices.Sort(counts)
	total := 0
	for _, n := range counts[max(0, len(counts)-c.MaxNodes):] {
		total += n
	}
	return total
}

// RanksOf is the number of ranks on a node; 0: auto.
func (c Cluster) RanksOf(n Node) int {
	switch {
	case n.Ranks > 0:
		return n.Ranks
	case n.GPUs != nil:
		return len(n.GPUs)
	}
	return c.Ranks
}

// DataConfig is what data.Open takes.
func (j *Job) DataConfig() data.Config {
	d := j.Data
	return data.Config{
		Source: d.Source, BlockSize: j.Model.BlockSize, Seed: j.Train.Seed,
		Path: d.Path, Tokenizer: d.Tokenizer, Split: d.Split, Stride: d.Stride,
		Digits: d.Digits, Length: d.Length, Symbols: d.Symbols,
	}
}

// ModelConfig is what model.New takes, for a vocabulary of the dataset's size.
func (j *Job) ModelConfig(vocabSize int) model.Config {
	m := j.Model
	gelu := compute.GELUTanh
	if m.GELU == "exact" {
		gelu = compute.GELUExact
	}
	return model.Config{
		VocabSize: vocabSize, BlockSize: m.BlockSize, Layers: m.Layers, Heads: m.Heads, Embed: m.Embed,
		Tied: m.Tied, Bias: m.Bias, GELU: gelu,
		EmbdDrop: m.EmbdDrop, ResidDrop: m.ResidDrop, AttnDrop: m.AttnDrop,
	}
}

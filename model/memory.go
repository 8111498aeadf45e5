package model

// MemoryPlan is what a rank's training holds, in bytes.
type MemoryPlan struct {
	Parameters  int64
	Gradients   int64
	Optimizer   int64 // AdamW's two moments
	Activations int64 // forward and backward, of one shard's batch
}

// Total is the sum of all parts.
func (p MemoryPlan) Total() int64 { return p.Parameters + p.Gradients + p.Optimizer + p.Activations }

// PlanMemory is what models of shape c need for batches of batch sequences and
// gradients flat gradient buffers (more than one when a rank sums several
// shards). It allocates none of it. It does not count a back end's own scratch.
func PlanMemory(c Config, batch, gradients int) MemoryPlan {
	flat := 4 * int64(c.FlatLen())
	m := int64(batch) * int64(c.BlockSize)
	floats := min(int64(headRows(c)), m) * int64(c.VocabSize)
	for _, r := range plan(c).rows {
		floats += m * int64(r.width)
	}
	return MemoryPlan{Parameters: flat, Gradients: int64(gradients) * flat, Optimizer: 2 * flat, Activations: 4 * floats}
}

// FLOPsPerToken is the arithmetic of one token's forward and backward pass in a
// full block: 6N + 6LCT, where N = 12LC² + VC are the weights of matrix products
// (the head among them, tied or not; embeddings are look-ups). Attention's
// products are counted for the half that causality leaves, as llm.c does.
func (c Config) FLOPsPerToken() float64 {
	l, e, t, v := float64(c.Layers), float64(c.Embed), float64(c.BlockSize), float64(c.VocabSize)
	return 6*(12*l*e*e+v*e) + 6*l*e*t
}

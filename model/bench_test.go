package model

import (
	"testing"

	"ddp/model/compute/ref"
)

// BenchmarkInit sets the 124 million parameters of GPT-2.
func BenchmarkInit(b *testing.B) {
	c, _ := Preset("gpt2")
	c.VocabSize, c.BlockSize, c.Tied = 50257, 1024, true
	g := &GPT{cfg: c, weights: newWeights(c)}
	g.flat = ref.New().Alloc(g.weights.flatLen())
	g.weights.bind(g.flat)
	b.SetBytes(4 * int64(c.NumParams()))
	for b.Loop() {
		g.Init(1337)
	}
}

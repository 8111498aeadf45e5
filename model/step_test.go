package model

import (
	"slices"
	"testing"
)

// TestStepAllocatesNothing: forward, backward and optimizer on the cpu back end.
func TestStepAllocatesNothing(t *testing.T) {
	b := openCPU(t, "", 2)
	c := small
	c.EmbdDrop, c.ResidDrop, c.AttnDrop = 0.1, 0.1, 0.1
	g := build(t, c, b, 2)
	opt, err := NewOptimizer(c, b, adamW)
	if err != nil {
		t.Fatal(err)
	}
	x, y := tokensOf(2*c.BlockSize, c.VocabSize)
	grads := b.Alloc(c.FlatLen())
	ready := func(lo, hi int) {}
	step := uint32(0)
	allocs := testing.AllocsPerRun(20, func() {
		_, count := g.LossGrad(x, y, 2, grads, Draw{Step: step}, ready)
		if _, err := opt.Step(g.Params(), grads, 1e-3, count); err != nil {
			t.Fatal(err)
		}
		step++
	})
	if allocs != 0 {
		t.Errorf("a step allocates %v times", allocs)
	}
}

// TestThreadsChangeNothing: three steps give the same bits on 1, 2 and 3 threads.
func TestThreadsChangeNothing(t *testing.T) {
	c := Config{VocabSize: 65, BlockSize: 33, Layers: 2, Heads: 3, Embed: 48, Bias: true, EmbdDrop: 0.1, ResidDrop: 0.1, AttnDrop: 0.1}
	x, y := tokensOf(4*c.BlockSize, c.VocabSize)
	var want []float32
	for _, threads := range []int{1, 2, 3} {
		b := openCPU(t, "", threads)
		g := build(t, c, b, 4)
		opt, err := NewOptimizer(c, b, adamW)
		if err != nil {
			t.Fatal(err)
		}
		grads := b.Alloc(c.FlatLen())
		for step := range 3 {
			_, count := g.LossGrad(x, y, 4, grads, Draw{Seed: 1, Step: uint32(step)}, nil)
			if _, err := opt.Step(g.Params(), grads, 1e-2, count); err != nil {
				t.Fatal(err)
			}
		}
		if want == nil {
			want = slices.Clone(g.Params().Host())
		} else if !slices.Equal(g.Params().Host(), want) {
			t.Errorf("%d threads give other parameters than one", threads)
		}
	}
}

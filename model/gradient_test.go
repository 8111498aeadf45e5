package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// TestGradientIsTheLossesSlope compares a few elements of every parameter's
// gradient with central differences of the loss, dropout drawn alike.
func TestGradientIsTheLossesSlope(t *testing.T) {
	for _, tied := range []bool{true, false} {
		for _, bias := range []bool{true, false} {
			for _, gelu := range []compute.GELU{compute.GELUTanh, compute.GELUExact} {
				c := small
				c.Tied, c.Bias, c.GELU = tied, bias, gelu
				c.EmbdDrop, c.ResidDrop, c.AttnDrop = 0.1, 0.2, 0.3
				t.Run(fmt.Sprintf("tied=%v bias=%v gelu=%v", tied, bias, gelu), func(t *testing.T) { checkSlopes(t, c) })
			}
		}
	}
}

func checkSlopes(t *testing.T, c Config) {
	const h = 1.0 / 256
	b := ref.New()
	g := build(t, c, b, 3)
	x, y := tokensOf(3*c.BlockSize, c.VocabSize)
	draw := Draw{Seed: 5, Step: 9, FirstSample: 4}
	grads, unused := b.Alloc(c.FlatLen()), b.Alloc(c.FlatLen())
	g.LossGrad(x, y, 3, grads, draw, nil)
	params := g.Params().Host()
	lossAt := func(i int, value float32) float64 {
		old := params[i]
		params[i] = value
		sum, _ := g.LossGrad(x, y, 3, unused, draw, nil)
		params[i] = old
		return sum
	}
	for k, p := range c.Params() {
		for n := range 3 {
			i := p.Offset + int(mixed(n, k))%p.Len
			slope := (lossAt(i, params[i]+h) - lossAt(i, params[i]-h)) / (2 * h)
			if got := float64(grads.Host()[i]); math.Abs(got-slope) > 0.01*math.Abs(slope)+2e-3 {
				t.Errorf("%s[%d]: gradient %.5f, slope %.5f", p.Name, i-p.Offset, got, slope)
			}
		}
	}
}

// TestGradientOfABatchIsTheSumOverItsSequences, so shards may be summed.
func TestGradientOfABatchIsTheSumOverItsSequences(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		c := small
		c.EmbdDrop, c.ResidDrop, c.AttnDrop = 0.1, 0.2, 0.3
		g := build(t, c, b, 4)
		x, y := tokensOf(4*c.BlockSize, c.VocabSize)
		whole, sum, one := b.Alloc(c.FlatLen()), b.Alloc(c.FlatLen()), b.Alloc(c.FlatLen())
		wholeLoss, wholeCount := g.LossGrad(x, y, 4, whole, Draw{Seed: 1, Step: 2, FirstSample: 8}, nil)
		loss, count := 0.0, 0
		for s := range 4 {
			lo, hi := s*c.BlockSize, (s+1)*c.BlockSize
			l, n := g.LossGrad(x[lo:hi], y[lo:hi], 1, one, Draw{Seed: 1, Step: 2, FirstSample: uint32(8 + s)}, nil)
			loss, count = loss+l, count+n
			b.Add(sum, one)
		}
		if math.Abs(loss-wholeLoss) > 1e-5*wholeLoss || count != wholeCount {
			t.Errorf("sequences: loss %v of %d, batch: %v of %d", loss, count, wholeLoss, wholeCount)
		}
		for _, p := range c.Params() {
			compare(t, p.Name, sum.Host()[p.Offset:p.Offset+p.Len], whole.Host()[p.Offset:p.Offset+p.Len])
		}
	})
}

// TestReadyTilesTheGradient: ranges come from the end, adjoin, and are final.
func TestReadyTilesTheGradient(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := small
		c.Tied = tied
		b := ref.New()
		g := build(t, c, b, 2)
		x, y := tokensOf(2*c.BlockSize, c.VocabSize)
		grads := b.Alloc(c.FlatLen())
		end := c.FlatLen()
		early := make([]float32, end)
		g.LossGrad(x, y, 2, grads, Draw{}, func(lo, hi int) {
			if hi != end || lo >= hi {
				t.Errorf("tied=%v: range [%d,%d) does not adjoin %d", tied, lo, hi, end)
			}
			copy(early[lo:hi], grads.Host()[lo:hi])
			end = lo
		})
		if end != 0 {
			t.Errorf("tied=%v: ranges end at %d, want 0", tied, end)
		}
		if !slices.Equal(early, grads.Host()) {
			t.Errorf("tied=%v: a range changed after it was ready", tied)
		}
	}
}

// TestHalt: a pass that is to end tells no further range ready, and what it left
// does not reach the next one.
func TestHalt(t *testing.T) {
	b := ref.New()
	g := build(t, small, b, 2)
	x, y := tokensOf(2*small.BlockSize, small.VocabSize)
	grads, want := b.Alloc(small.FlatLen()), b.Alloc(small.FlatLen())
	wantSum, _ := g.LossGrad(x, y, 2, want, Draw{}, nil)
	done := make(chan struct{})
	g.HaltOn(done)
	told := 0
	g.LossGrad(x, y, 2, grads, Draw{}, func(int, int) {
		if told++; told == 2 {
			close(done)
		}
	})
	if told != 3 { // a block has two ranges
		t.Errorf("%d ranges were told ready, want none after the block", told)
	}
	g.LossGrad(x, y, 2, grads, Draw{}, func(int, int) { t.Error("a range of a pass that was over before it began") })
	g.HaltOn(nil)
	if sum, _ := g.LossGrad(x, y, 2, grads, Draw{}, nil); sum != wantSum || !slices.Equal(grads.Host(), want.Host()) {
		t.Errorf("loss %v, want %v, or another gradient", sum, wantSum)
	}
}

// TestHeadChunks: the head in pieces of 5 rows gives what it gives at once, and
// stale gradients don't leak into the result.
func TestHeadChunks(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		for _, tied := range []bool{true, false} {
			c := small
			c.Tied = tied
			g := build(t, c, b, 2)
			x, y := tokensOf(2*c.BlockSize, c.VocabSize)
			whole, pieces := b.Alloc(c.FlatLen()), b.Alloc(c.FlatLen())
			wantSum, _ := g.LossGrad(x, y, 2, whole, Draw{}, nil)
			wantLogits := g.LogitsAll(x, 2)
			for _, p := range c.Params() {
				fill(pieces.Host()[p.Offset:p.Offset+p.Len], 1e6)
			}
			g.chunk = 5
			sum, _ := g.LossGrad(x, y, 2, pieces, Draw{}, nil)
			if math.Abs(sum-wantSum) > 1e-5*wantSum {
				t.Errorf("loss %v in pieces, %v at once", sum, wantSum)
			}
			compare(t, "logits", g.LogitsAll(x, 2), wantLogits)
			for _, p := range c.Params() {
				compare(t, p.Name, pieces.Host()[p.Offset:p.Offset+p.Len], whole.Host()[p.Offset:p.Offset+p.Len])
			}
		}
	})
}

// TestLossOfSequences agrees with LossGrad, and ignores dropout.
func TestLossOfSequences(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		g := build(t, small, b, 3)
		x, y := tokensOf(3*small.BlockSize, small.VocabSize)
		grads := b.Alloc(small.FlatLen())
		losses := make([]float64, 3)
		counts := g.Loss(x, y, 3, losses)
		for s := range 3 {
			lo, hi := s*small.BlockSize, (s+1)*small.BlockSize
			sum, count := g.LossGrad(x[lo:hi], y[lo:hi], 1, grads, Draw{}, nil)
			if math.Abs(sum-losses[s]) > 1e-5*sum || count != counts[s] {
				t.Errorf("sequence %d: loss %v of %d, LossGrad has %v of %d", s, losses[s], counts[s], sum, count)
			}
		}
		dropping := small
		dropping.EmbdDrop, dropping.ResidDrop, dropping.AttnDrop = 0.5, 0.5, 0.5
		again := make([]float64, 3)
		build(t, dropping, b, 3).Loss(x, y, 3, again)
		if !slices.Equal(again, losses) {
			t.Errorf("losses %v with dropout rates set, %v without", again, losses)
		}
	})
}

// TestBatchesLeaveNothingBehind: the same batch gives the same bits after
// batches of other shapes.
func TestBatchesLeaveNothingBehind(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		c := small
		c.EmbdDrop, c.ResidDrop, c.AttnDrop = 0.1, 0.2, 0.3
		g := build(t, c, b, 3)
		x, y := tokensOf(3*c.BlockSize, c.VocabSize)
		first, again := b.Alloc(c.FlatLen()), b.Alloc(c.FlatLen())
		draw := Draw{Seed: 2, Step: 3, FirstSample: 1}
		want, _ := g.LossGrad(x, y, 3, first, draw, nil)
		g.LossGrad(x[:8], y[:8], 2, again, Draw{Seed: 7}, nil)
		g.Logits(x[2:5])
		if got, _ := g.LossGrad(x, y, 3, again, draw, nil); got != want || !slices.Equal(again.Host(), first.Host()) {
			t.Errorf("loss %v, then %v", want, got)
		}
	})
}

package conformance

import (
	"fmt"
	"math"

	"ddp/model/compute"
)

// The sizes of the checks of causality: more than one block of queries.
const (
	seqs, tokens, heads, headSize = 2, 37, 2, 24
	channels                      = heads * headSize
)

// attend runs one attention over qkv with dropout.
func attend(b compute.Backend, qkv compute.Buffer) (out compute.Buffer) {
	out = b.Alloc(seqs * tokens * channels)
	b.Attention(out, b.Alloc(seqs*heads*tokens), qkv, seqs, tokens, heads, headSize, draw(0.2, 0))
	return out
}

// earlierRows compares the outputs before position cut with those of a run in
// which everything from cut on was replaced by later.
func earlierRows(b compute.Backend, later func(int) float32) error {
	qkv := b.Alloc(seqs * tokens * 3 * channels)
	fill := normal(1, 1)
	for i := range qkv.Host() {
		qkv.Host()[i] = fill(i)
	}
	want := append([]float32(nil), attend(b, qkv).Host()...)
	for cut := 1; cut < tokens; cut++ {
		changed := b.Alloc(qkv.Len())
		copy(changed.Host(), qkv.Host())
		for s := range seqs {
			for i := (s*tokens + cut) * 3 * channels; i < (s+1)*tokens*3*channels; i++ {
				changed.Host()[i] = later(i)
			}
		}
		got := attend(b, changed).Host()
		for s := range seqs {
			lo, hi := s*tokens*channels, (s*tokens+cut)*channels
			if at := firstDifference(got[lo:hi], want[lo:hi]); at >= 0 {
				return fmt.Errorf("position %d sees position %d", at/channels, cut)
			}
		}
	}
	return nil
}

// causality wants earlier outputs bit-identical whatever later tokens are.
func causality(b compute.Backend) Result {
	return Result{Op: "Attention", Shape: "causality", Err: earlierRows(b, normal(9, 1))}
}

// laterNaN wants the same when they are not numbers: a mask that multiplies by 0 would let them through.
func laterNaN(b compute.Backend) Result {
	nan := float32(math.NaN())
	return Result{Op: "Attention", Shape: "later NaN", Err: earlierRows(b, func(int) float32 { return nan })}
}

// nanShows wants a NaN among the logits to reach the loss, so that a run that
// diverges is noticed.
func nanShows(b compute.Backend) Result {
	r := Result{Op: "CrossEntropy", Shape: "NaN shows"}
	const v = 37
	for at := range v {
		logits, loss := b.Alloc(v), b.Alloc(1)
		logits.Host()[at] = float32(math.NaN())
		b.CrossEntropy(loss, logits, []int32{3}, 1, v, false)
		if l := loss.Host()[0]; l == l {
			r.Err = fmt.Errorf("the loss is %v with a NaN at logit %d", l, at)
		}
	}
	return r
}

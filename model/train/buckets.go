package train

import (
	"context"
	"fmt"

	"ddp/model/compute"
	"ddp/spmd"
)

// bucketLen is the least number of float32 values that are reduced together:
// large enough to amortise a message, small enough that the first bucket leaves
// early in the backward pass.
const bucketLen = 1 << 20

// buckets reduces flat ranges of the gradient over all ranks while the backward
// pass still computes the ranges below them.
type buckets struct {
	partials *partials
	reducer  *spmd.GradientReducer
	lo, hi   int // finished but not yet sent
	works    []*spmd.Work
}

func newBuckets(ctx context.Context, w *spmd.World, shards int, p *partials) (*buckets, error) {
	r, err := spmd.NewGradientReducer(ctx, w, shards)
	if err != nil {
		return nil, err
	}
	return &buckets{partials: p, reducer: r}, nil
}

// ready notes that flat range [lo, hi) of this rank's partial sums is final.
func (b *buckets) ready(lo, hi int) {
	if b.hi > b.lo && hi != b.lo {
		b.send()
	}
	if b.hi == b.lo {
		b.hi = hi
	}
	b.lo = lo
	if b.hi-b.lo >= bucketLen {
		b.send()
	}
}

// send starts the reduction of what is finished.
func (b *buckets) send() {
	if b.hi == b.lo {
		return
	}
	var parts [][]float32
	for _, sum := range b.partials.sums() {
		parts = append(parts, sum.Slice(b.lo, b.hi).Host())
	}
	b.works = append(b.works, b.reducer.Reduce(parts, parts[0]))
	b.lo, b.hi = 0, 0
}

// wait ends the step's reductions and returns the whole world's gradient.
func (b *buckets) wait(ctx context.Context) (compute.Buffer, error) {
	b.send()
	for _, w := range b.works {
		if err := w.Wait(ctx); err != nil {
			return compute.Buffer{}, fmt.Errorf("reduce gradients: %w", err)
		}
	}
	b.works = b.works[:0]
	return b.partials.stack[0], nil
}

func (b *buckets) close() error { return b.reducer.Close() }

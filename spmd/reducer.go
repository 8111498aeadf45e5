package spmd

import (
	"context"
	"fmt"
)

// GradientReducer adds the partial sums that the ranks hold of all shards. Its
// result is the canonical tree's, bit for bit, whatever the World's size: each
// chunk of the vector has an owner who receives everybody's partial sums and
// adds them in the tree's order; then the chunks are gathered. When each rank
// holds one partial sum (the size is a power of two), a rank sends as many
// bytes as in a ring, 2(n-1)/n of the vector.
type GradientReducer struct {
	w       *World
	shards  int
	nodes   [][]Node    // by rank: what its partial sums are
	scratch [][]float32 // the stack of sums in progress, one slice of a chunk each
}

// sliceLength is the number of elements that an owner sums at a time; a stack
// of slices stays in the core's cache.
const sliceLength = 8 << 10

// NewGradientReducer prepares for sums over shards, a power of two and at least
// w's size. All ranks must call it. It splits w, so that reductions run
// concurrently with other work on w.
func NewGradientReducer(ctx context.Context, w *World, shards int) (*GradientReducer, error) {
	if shards < w.size || shards&(shards-1) != 0 {
		return nil, fmt.Errorf("gradient reducer: %d shards for %d ranks: shards must be a power of two, and at least the number of ranks", shards, w.size)
	}
	own, err := w.Split(ctx, 0, w.rank)
	if err != nil {
		return nil, fmt.Errorf("gradient reducer: %w", err)
	}
	r := &GradientReducer{w: own, shards: shards, nodes: make([][]Node, w.size)}
	for rank := range r.nodes {
		r.nodes[rank] = Cover(Shards(shards, w.size, rank))
	}
	return r, nil
}

// Close waits for reductions in progress and frees what the reducer holds.
func (r *GradientReducer) Close() error { return r.w.Close() }

// Reduce sums in the background. parts[i] is this rank's partial sum for
// Cover(Shards(shards, size, rank))[i]; all have out's length. out may be
// parts[0]. parts and out are in use until the Work is done. All ranks must
// issue the same reductions in the same order.
func (r *GradientReducer) Reduce(parts [][]float32, out []float32) *Work {
	t := task{head: header{kind: kindGradient, dtype: float32Type, root: int32(r.shards), count: int64(len(out))}}
	if len(parts) != len(r.nodes[r.w.rank]) {
		t.err = fmt.Errorf("there are %d partial sums instead of %d", len(parts), len(r.nodes[r.w.rank]))
	}
	for i, p := range parts {
		if len(p) != len(out) {
			t.err = fmt.Errorf("partial sum %d has %d elements instead of %d", i, len(p), len(out))
		}
	}
	t.run = func(o *operation) error { return r.run(o, parts, out) }
	return r.w.start(t)
}

func (r *GradientReducer) run(o *operation, parts [][]float32, out []float32) error {
	if r.w.size == 1 {
		copy(out, parts[0]) // one partial sum covers all shards
		return nil
	}
	owned := chunks(bytesOf(out), r.w.size)
	at := 0
	for peer, c := range owned {
		n := len(c) / 4
		if peer != r.w.rank {
			r.sendParts(o, peer, parts, at, at+n)
		}
		at += n
	}
	if err := r.sum(o, parts, owned); err != nil {
		return err
	}
	// out may be parts[0], of which chunks still have to leave.
	if err := o.flush(); err != nil {
		return err
	}
	return o.allGatherRing(owned, r.w.rank)
}

// sendParts sends the peer's chunk [lo, hi) of all partial sums, slice by slice.
func (r *GradientReducer) sendParts(o *operation, peer int, parts [][]float32, lo, hi int) {
	at, node := lo, 0
	next := func() []byte {
		if at == hi {
			return nil
		}
		end := min(at+sliceLength, hi)
		b := bytesOf(parts[node][at:end])
		if node++; node == len(parts) {
			at, node = end, 0
		}
		return b
	}
	o.sendParts(peer, int64(hi-lo)*4*int64(len(parts)), nil, next)
}

// sum computes this rank's chunk of out.
func (r *GradientReducer) sum(o *operation, parts [][]float32, owned [][]byte) error {
	mine := numbers[float32](owned[r.w.rank])
	streams := make([]stream, r.w.size)
	for peer := range streams {
		if peer == r.w.rank {
			continue
		}
		var err error
		if streams[peer], err = o.begin(peer, int64(len(mine))*4*int64(len(r.nodes[peer]))); err != nil {
			return err
		}
	}
	base := 0
	for _, c := range owned[:r.w.rank] {
		base += len(c) / 4
	}
	for at := 0; at < len(mine); at += sliceLength {
		end := min(at+sliceLength, len(mine))
		s := summation{reducer: r, length: end - at}
		for rank, nodes := range r.nodes {
			for i, n := range nodes {
				if rank == r.w.rank {
					s.add(n, 0, parts[i][base+at:base+end])
					s.settle(n)
					continue
				}
				err := streams[rank].take(4*s.length, func(at int, b []byte) { s.add(n, at/4, numbers[float32](b)) })
				if err != nil {
					return err
				}
				s.settle(n)
			}
		}
		copy(mine[at:end], r.scratch[0][:s.length])
	}
	return nil
}

// summation adds the partial sums of one slice as they come, in the order of
// their shards. Like a binary counter, it keeps a stack of subtrees, each a
// left half that waits for its right one.
type summation struct {
	reducer *GradientReducer
	length  int
	stack   []Node
}

// add takes elements from offset at of node n's slice.
func (s *summation) add(n Node, at int, x []float32) {
	top := len(s.stack) - 1
	if top >= 0 && n.isRightOf(s.stack[top]) {
		sum := s.reducer.scratch[top][at : at+len(x)]
		add(sum, sum, x)
		return
	}
	copy(s.reducer.level(top + 1)[at:], x)
}

// settle records that all of node n has been added, and merges halves.
func (s *summation) settle(n Node) {
	top := len(s.stack) - 1
	if top < 0 || !n.isRightOf(s.stack[top]) {
		s.stack = append(s.stack, n)
		return
	}
	s.stack[top] = n.parent()
	for ; top > 0 && s.stack[top].isRightOf(s.stack[top-1]); top-- {
		left, right := s.reducer.scratch[top-1][:s.length], s.reducer.scratch[top]
		add(left, left, right)
		s.stack = s.stack[:top]
		s.stack[top-1] = s.stack[top-1].parent()
	}
}

// level returns the stack's slice at a height.
func (r *GradientReducer) level(height int) []float32 {
	if height == len(r.scratch) {
		r.scratch = append(r.scratch, make([]float32, sliceLength))
	}
	return r.scratch[height]
}

package train

import (
	"ddp/model/compute"
	"ddp/spmd"
)

// partials sums the gradients of one rank's shards in the canonical tree's
// order with a binary counter: stack[i] holds the sum of the subtree nodes[i],
// and two neighbours that are siblings in the tree are merged as soon as the
// second is there. After the last shard the nodes are spmd.Cover(lo, hi).
type partials struct {
	backend compute.Backend
	flat    int              // values of a gradient
	shards  int              // of a step
	lo, hi  int              // shards of this rank
	stack   []compute.Buffer // flat gradients, allocated once
	nodes   []spmd.Node      // what the lower part of stack holds
}

func newPartials(b compute.Backend, flat, shards int) *partials {
	return &partials{backend: b, flat: flat, shards: shards}
}

// place gives p the shards of a rank. Memory that a larger share needed stays.
func (p *partials) place(size, rank int) {
	p.lo, p.hi = spmd.Shards(p.shards, size, rank)
	p.nodes = nil
	for range Depth(p.lo, p.hi) - len(p.stack) {
		p.stack = append(p.stack, p.backend.Alloc(p.flat))
	}
}

// Depth is the number of flat gradients that a rank with shards lo to hi-1
// needs at once: the deepest that the binary counter gets.
func Depth(lo, hi int) int {
	var nodes []spmd.Node
	depth := 0
	for shard := lo; shard < hi; shard++ {
		nodes = append(nodes, spmd.Node{Index: shard})
		depth = max(depth, len(nodes))
		nodes = nodes[:len(nodes)-merges(nodes)]
		nodes[len(nodes)-1] = grown(nodes[len(nodes)-1], shard)
	}
	return depth
}

// merges counts how many times the top of nodes can be merged with its sibling.
func merges(nodes []spmd.Node) int {
	n := 0
	top := nodes[len(nodes)-1]
	for i := len(nodes) - 2; i >= 0 && nodes[i].Level == top.Level && nodes[i].Index^1 == top.Index && top.Index&1 == 1; i-- {
		top = spmd.Node{Level: top.Level + 1, Index: top.Index >> 1}
		n++
	}
	return n
}

// grown is the node that starts where n starts and ends after shard.
func grown(n spmd.Node, shard int) spmd.Node {
	for (n.Index+1)<<n.Level <= shard {
		n = spmd.Node{Level: n.Level + 1, Index: n.Index >> 1}
	}
	return n
}

// begin forgets the previous step's sums.
func (p *partials) begin() { p.nodes = p.nodes[:0] }

// push makes room for the gradient of shard and returns where it goes, and a
// function that merges a finished range of it down the stack.
func (p *partials) push(shard int) (grads compute.Buffer, merge func(lo, hi int)) {
	p.nodes = append(p.nodes, spmd.Node{Index: shard})
	top := len(p.nodes) - 1
	n := merges(p.nodes)
	p.nodes = p.nodes[:len(p.nodes)-n]
	p.nodes[len(p.nodes)-1] = grown(p.nodes[len(p.nodes)-1], shard)
	return p.stack[top], func(lo, hi int) {
		for i := top; i > top-n; i-- {
			p.backend.Add(p.stack[i-1].Slice(lo, hi), p.stack[i].Slice(lo, hi))
		}
	}
}

// sums are this rank's partial sums, one for each node of its cover.
func (p *partials) sums() []compute.Buffer { return p.stack[:len(p.nodes)] }

package train

import (
	"fmt"
	"reflect"
	"testing"

	"ddp/model/compute/ref"
	"ddp/spmd"
)

// TestPartialsAreTheCover holds the binary counter against spmd.Cover, and its
// sums against adding the shards of each node by the tree's definition.
func TestPartialsAreTheCover(t *testing.T) {
	b := ref.New()
	defer b.Close()
	for _, shards := range []int{1, 2, 4, 8, 16} {
		for size := 1; size <= shards; size++ {
			for rank := range size {
				t.Run(fmt.Sprintf("%d shards, rank %d of %d", shards, rank, size), func(t *testing.T) {
					p := newPartials(b, 1, shards)
					p.place(size, rank)
					p.begin()
					for s := p.lo; s < p.hi; s++ {
						grads, merge := p.push(s)
						grads.Host()[0] = shardValue(s)
						merge(0, 1)
					}
					want := spmd.Cover(p.lo, p.hi)
					if !reflect.DeepEqual(p.nodes, want) {
						t.Fatalf("nodes %v, want %v", p.nodes, want)
					}
					for i, sum := range p.sums() {
						if got, want := sum.Host()[0], treeValue(want[i]); got != want {
							t.Errorf("node %v sums to %v, want %v", p.nodes[i], got, want)
						}
					}
				})
			}
		}
	}
}

// shardValue is not exactly summable in float32, so that order shows.
func shardValue(shard int) float32 { return 1 / float32(3*shard+7) }

// treeValue is the sum by the definition of the tree.
func treeValue(n spmd.Node) float32 {
	if n.Level == 0 {
		return shardValue(n.Index)
	}
	left := spmd.Node{Level: n.Level - 1, Index: 2 * n.Index}
	right := spmd.Node{Level: n.Level - 1, Index: 2*n.Index + 1}
	return treeValue(left) + treeValue(right)
}

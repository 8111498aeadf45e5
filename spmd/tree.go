package spmd

import "math/bits"

// Shards returns the contiguous range [lo, hi) of total shards that a rank of
// size ranks works on: as equal as can be. total is a power of two, size at
// most total.
func Shards(total, size, rank int) (lo, hi int) {
	return rank * total / size, (rank + 1) * total / size
}

// Node is a subtree of the canonical tree over shards. It covers the shards
// [Index<<Level, (Index+1)<<Level); its value is the sum of its left and its
// right half.
type Node struct{ Level, Index int }

// Cover returns the largest subtrees that together tile the shards [lo, hi), in
// order. A rank that works on these shards reduces them to one partial sum for
// each.
func Cover(lo, hi int) []Node {
	var nodes []Node
	for lo < hi {
		level := bits.Len(uint(hi-lo)) - 1
		if lo > 0 {
			level = min(level, bits.TrailingZeros(uint(lo)))
		}
		nodes = append(nodes, Node{Level: level, Index: lo >> level})
		lo += 1 << level
	}
	return nodes
}

// isRightOf says whether n is the right half whose left half is other.
func (n Node) isRightOf(other Node) bool {
	return n.Level == other.Level && n.Index&1 == 1 && other.Index == n.Index-1
}

func (n Node) parent() Node { return Node{Level: n.Level + 1, Index: n.Index >> 1} }

// TreeSum adds x in a balanced tree, cut at the largest power of two below its
// length: the result depends on x alone, not on who computed its parts.
func TreeSum(x []float64) float64 {
	switch len(x) {
	case 0:
		return 0
	case 1:
		return x[0]
	}
	half := 1 << (bits.Len(uint(len(x)-1)) - 1)
	return TreeSum(x[:half]) + TreeSum(x[half:])
}

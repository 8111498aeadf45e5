package spmd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestShardsTile(t *testing.T) {
	for total := 1; total <= 64; total *= 2 {
		for size := 1; size <= total; size++ {
			next := 0
			for rank := range size {
				lo, hi := Shards(total, size, rank)
				if lo != next || hi-lo < total/size || hi-lo > (total+size-1)/size {
					t.Fatalf("total %d, size %d, rank %d: [%d, %d)", total, size, rank, lo, hi)
				}
				next = hi
			}
			if next != total {
				t.Fatalf("total %d, size %d: ends at %d", total, size, next)
			}
		}
	}
}

// TestCover checks that nodes tile the range, in order, and are maximal: no
// node's parent fits too.
func TestCover(t *testing.T) {
	for lo := 0; lo <= 64; lo++ {
		for hi := lo; hi <= 64; hi++ {
			at := lo
			for _, n := range Cover(lo, hi) {
				if n.Index<<n.Level != at {
					t.Fatalf("[%d, %d): %v does not start at %d", lo, hi, n, at)
				}
				at = (n.Index + 1) << n.Level
				p := n.parent()
				if p.Index<<p.Level >= lo && (p.Index+1)<<p.Level <= hi {
					t.Fatalf("[%d, %d): %v fits as well as %v", lo, hi, p, n)
				}
			}
			if at != hi {
				t.Fatalf("[%d, %d): ends at %d", lo, hi, at)
			}
		}
	}
}

// dumbTree pads with nothing: it sums [lo, hi) of a tree over a power of two.
func dumbTree(x []float64, lo, width int) float64 {
	switch {
	case lo >= len(x):
		return 0
	case width == 1:
		return x[lo]
	case lo+width/2 >= len(x):
		return dumbTree(x, lo, width/2)
	}
	return dumbTree(x, lo, width/2) + dumbTree(x, lo+width/2, width/2)
}

func TestTreeSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64() * math.Exp(r.NormFloat64()*5)
		}
		if got, want := TreeSum(x), dumbTree(x, 0, 128); got != want {
			t.Errorf("%d numbers: %v, want %v", n, got, want)
		}
	}
}

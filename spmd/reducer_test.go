package spmd

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// dumbSum is the definition: the canonical tree over all shards' vectors.
func dumbSum(shards [][]float32) []float32 {
	if len(shards) == 1 {
		return append([]float32(nil), shards[0]...)
	}
	left, right := dumbSum(shards[:len(shards)/2]), dumbSum(shards[len(shards)/2:])
	for i := range left {
		left[i] += right[i]
	}
	return left
}

// partials returns what a rank hands to the reducer.
func partials(shards [][]float32, size, rank int) [][]float32 {
	var parts [][]float32
	for _, n := range Cover(Shards(len(shards), size, rank)) {
		parts = append(parts, dumbSum(shards[n.Index<<n.Level:(n.Index+1)<<n.Level]))
	}
	return parts
}

func randomShards(seed uint64, shards, length int) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 9))
	x := make([][]float32, shards)
	for s := range x {
		x[s] = make([]float32, length)
		for i := range x[s] {
			x[s][i] = float32(r.NormFloat64() * math.Exp(3*r.NormFloat64()))
		}
	}
	return x
}

func sameBits(t *testing.T, got, want []float32, what string) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("%s: element %d is %v instead of %v", what, i, got[i], want[i])
			return
		}
	}
}

// TestGradientReducerIsTheTree holds every size and shard count against the
// definition, with in-place results and several reductions in flight.
func TestGradientReducerIsTheTree(t *testing.T) {
	lengths := []int{0, 1, 17, 1000, sliceLength*3 + 5}
	for size := 1; size <= 8; size++ {
		for shards := 1; shards <= 32; shards *= 2 {
			if shards < size {
				continue
			}
			t.Run(fmt.Sprintf("size-%d-shards-%d", size, shards), func(t *testing.T) {
				var inputs [][][]float32
				var want [][]float32
				for i, n := range lengths {
					inputs = append(inputs, randomShards(uint64(i), shards, n))
					want = append(want, dumbSum(inputs[i]))
				}
				succeed(t, InMemory(size), func(w *World) error {
					return reduceAll(t, w, shards, inputs, want)
				})
			})
		}
	}
}

func reduceAll(t *testing.T, w *World, shards int, inputs [][][]float32, want [][]float32) error {
	r, err := NewGradientReducer(t.Context(), w, shards)
	if err != nil {
		return err
	}
	var works []*Work
	var outs [][]float32
	for i := range inputs {
		parts := partials(inputs[i], w.size, w.rank)
		out := parts[0]
		if i%2 == 0 {
			out = make([]float32, len(parts[0]))
		}
		works, outs = append(works, r.Reduce(parts, out)), append(outs, out)
	}
	for i, k := range works {
		if err := k.Wait(t.Context()); err != nil {
			return err
		}
		sameBits(t, outs[i], want[i], fmt.Sprintf("rank %d, length %d", w.rank, len(want[i])))
	}
	return r.Close()
}

// TestGradientReducerBesideTheParent reduces while the parent World is in use.
func TestGradientReducerBesideTheParent(t *testing.T) {
	shards := randomShards(3, 8, 50_000)
	want := dumbSum(shards)
	succeed(t, joined(t, 2, transport("shm")), func(w *World) error {
		r, err := NewGradientReducer(t.Context(), w, 8)
		if err != nil {
			return err
		}
		out := make([]float32, len(want))
		k := r.Reduce(partials(shards, 2, w.rank), out)
		for range 50 {
			if err := AllReduce(t.Context(), w, []float64{1, 2, 3}, Sum); err != nil {
				return err
			}
		}
		if err := k.Wait(t.Context()); err != nil {
			return err
		}
		sameBits(t, out, want, "out")
		return r.Close()
	})
}

func TestGradientReducerRefuses(t *testing.T) {
	for _, shards := range []int{0, 3, -4} {
		if _, err := NewGradientReducer(context.Background(), Solo(), shards); err == nil {
			t.Errorf("%d shards were accepted", shards)
		}
	}
	r, err := NewGradientReducer(t.Context(), Solo(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Reduce([][]float32{{1}, {2}}, []float32{0}).Wait(t.Context()); err == nil {
		t.Error("two partial sums for one node were accepted")
	}
	if err := r.Reduce([][]float32{{1}}, []float32{0, 0}).Wait(t.Context()); err == nil {
		t.Error("a partial sum of another length was accepted")
	}
}

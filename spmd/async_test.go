package spmd

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
)

// TestOrder mixes works and blocking calls: they run in the order of issue.
func TestOrder(t *testing.T) {
	succeed(t, InMemory(3), func(w *World) error {
		var works []*Work
		xs := make([][]int64, 60)
		for i := range xs {
			xs[i] = []int64{int64(i * (w.rank + 1))}
			if i%7 == 6 {
				if err := AllReduce(t.Context(), w, xs[i], Sum); err != nil {
					return err
				}
				for j := range i { // everything before it has ended
					if xs[j][0] != int64(6*j) {
						t.Errorf("after %d: result %d is %d", i, j, xs[j][0])
					}
				}
				continue
			}
			works = append(works, AllReduceAsync(w, xs[i], Sum))
		}
		return waitAll(t.Context(), works)
	})
}

func TestWaitGivesUpAlone(t *testing.T) {
	worlds := InMemory(2)
	k := worlds[0].BarrierAsync()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	succeed(t, worlds, func(w *World) error {
		if w.rank == 1 {
			return w.Barrier(t.Context())
		}
		return k.Wait(t.Context()) // the barrier went on
	})
}

// TestSplit forms groups of unequal size, one rank staying out, and uses child
// and parent at the same time.
func TestSplit(t *testing.T) {
	for name, worlds := range map[string][]*World{"memory": InMemory(6), "shm": joined(t, 6, transport("shm")), "mixed": joined(t, 6, twoHosts)} {
		t.Run(name, func(t *testing.T) {
			succeed(t, worlds, func(w *World) error {
				color := []int{0, 0, 1, 0, -1, 2}[w.rank]
				child, err := w.Split(t.Context(), color, -w.rank)
				if err != nil {
					return err
				}
				if color < 0 {
					if child != nil {
						t.Error("a rank without a color got a world")
					}
					return w.Barrier(t.Context())
				}
				wantSize, wantRank := []int{3, 1, 1}[color], map[int]int{3: 0, 1: 1, 0: 2}[w.rank]
				if child.Size() != wantSize || child.Rank() != wantRank {
					t.Errorf("rank %d became %d of %d", w.rank, child.Rank(), child.Size())
				}
				k := w.BarrierAsync()
				sum := []int32{int32(w.rank)}
				if err := AllReduce(t.Context(), child, sum, Sum); err != nil {
					return err
				}
				if want := []int32{4, 2, 5}[color]; sum[0] != want {
					t.Errorf("color %d: sum %d", color, sum[0])
				}
				return errors.Join(k.Wait(t.Context()), child.Close())
			})
		})
	}
}

// TestSameBits compares ranks, and runs, of sums that depend on their order.
func TestSameBits(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7} {
		for _, length := range []int{5, 40_000} {
			results := make([][]float32, 2*n)
			for run := range 2 {
				succeed(t, InMemory(n), func(w *World) error {
					x := randomShards(uint64(w.rank), 1, length)[0]
					if w.rank < 2 {
						x[0] = math.Float32frombits(0x7fc00000 + uint32(w.rank) + 1) // NaNs that differ
					}
					results[run*n+w.rank] = x
					return AllReduce(t.Context(), w, x, Sum)
				})
			}
			for i, x := range results {
				sameBits(t, x, results[0], "result "+string(rune('0'+i)))
			}
		}
	}
}

// TestConcurrentSplits uses three children at once, each from its goroutine.
func TestConcurrentSplits(t *testing.T) {
	succeed(t, joined(t, 3, transport("shm")), func(w *World) error {
		children := make([]*World, 3)
		for i := range children {
			var err error
			if children[i], err = w.Split(t.Context(), 0, w.rank); err != nil {
				return err
			}
		}
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for i, c := range children {
			wg.Go(func() {
				for range 100 {
					x := []int64{1}
					if err := AllReduce(t.Context(), c, x, Sum); err != nil || x[0] != 3 {
						errs[i] = errors.Join(err, errors.New("wrong sum"))
						return
					}
				}
				errs[i] = c.Close()
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

func TestBenchIsRight(t *testing.T) {
	succeed(t, InMemory(3), func(w *World) error {
		for _, name := range Benchmarks {
			median, alg, bus, wrong, err := Bench(t.Context(), w, name, 100_000, 2)
			if err != nil {
				return err
			}
			if wrong != 0 || median <= 0 || name != "barrier" && (alg <= 0 || bus <= 0) {
				t.Errorf("%s: %v, %v, %v, %d wrong", name, median, alg, bus, wrong)
			}
		}
		_, _, _, _, err := Bench(t.Context(), w, "telepathy", 1, 1)
		if err == nil {
			t.Error("an unknown benchmark ran")
		}
		return nil
	})
}

package data

import (
	"fmt"
	"slices"
	"testing"
)

func TestEveryIndexOnceAnEpoch(t *testing.T) {
	sizes := []int{4095, 4096, 4097, 10000}
	for n := 1; n <= 300; n++ {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		s := NewSampler(n, 7)
		for epoch := range 2 {
			seen := make([]bool, n)
			for p := range n {
				gotEpoch, index := s.Index(int64(epoch)*int64(n) + int64(p))
				if gotEpoch != epoch {
					t.Fatalf("n %d: position %d of epoch %d reads as epoch %d", n, p, epoch, gotEpoch)
				}
				if index < 0 || index >= n || seen[index] {
					t.Fatalf("n %d, epoch %d: index %d is out of range or comes twice", n, epoch, index)
				}
				seen[index] = true
			}
		}
	}
}

func epochOrder(s Sampler, epoch int) []int {
	order := make([]int, s.n)
	for p := range order {
		_, order[p] = s.Index(int64(epoch)*int64(s.n) + int64(p))
	}
	return order
}

func TestEpochsAndSeedsDiffer(t *testing.T) {
	a := NewSampler(100, 1)
	if slices.Equal(epochOrder(a, 0), epochOrder(a, 1)) {
		t.Error("epochs 0 and 1 have the same order")
	}
	if slices.Equal(epochOrder(a, 0), epochOrder(NewSampler(100, 2), 0)) {
		t.Error("seeds 1 and 2 have the same order")
	}
	if slices.IsSorted(epochOrder(a, 0)) {
		t.Error("epoch 0 is not shuffled")
	}
}

// A snapshot resumes on another version of the program only while these hold.
func TestSamplerGolden(t *testing.T) {
	for _, c := range []struct {
		n    int
		seed uint64
		want string
	}{
		{1, 1337, "[0]"},
		{10, 1337, "[4 6 0 9 5 2 1 3 7 8]"},
		{10, 1338, "[2 1 9 6 8 7 0 4 5 3]"},
	} {
		if got := fmt.Sprint(epochOrder(NewSampler(c.n, c.seed), 3)); got != c.want {
			t.Errorf("n %d, seed %d, epoch 3: %s, want %s", c.n, c.seed, got, c.want)
		}
	}
	if epoch, index := NewSampler(1_000_000_007, 42).Index(5_000_000_000_123); epoch != 4999 || index != 735380339 {
		t.Errorf("large sampler: epoch %d index %d, want 4999 %d", epoch, index, 735380339)
	}
}

// chiSquare is the statistic of counts against an even spread.
func chiSquare(counts []int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	expected := float64(total) / float64(len(counts))
	sum := 0.0
	for _, c := range counts {
		d := float64(c) - expected
		sum += d * d / expected
	}
	return sum
}

// Over many epochs each position must read each index equally often, and so
// must each pair of neighbours. The bounds are the 99.99% points: the draws are
// fixed, so a pass stays a pass.
func TestSamplerIsUniform(t *testing.T) {
	for _, c := range []struct {
		n     int
		bound float64 // of chi-square with n-1 degrees of freedom
	}{{2, 15.1}, {3, 18.4}, {5, 23.5}, {17, 45.9}, {64, 111.0}} {
		const epochs = 4000
		s := NewSampler(c.n, 99)
		orders := make([][]int, epochs)
		for e := range orders {
			orders[e] = epochOrder(s, e)
		}
		worst := 0.0
		for p := range c.n {
			counts := make([]int, c.n)
			for _, order := range orders {
				counts[order[p]]++
			}
			worst = max(worst, chiSquare(counts))
		}
		if worst > c.bound {
			t.Errorf("n %d: chi-square %.1f of some position is above %.1f", c.n, worst, c.bound)
		}
		steps := make([]int, c.n-1) // neighbours differ by 1..n-1, modulo n
		for _, order := range orders {
			steps[(order[1]-order[0]+c.n)%c.n-1]++
		}
		if got := chiSquare(steps); got > c.bound {
			t.Errorf("n %d: chi-square %.1f of the first two positions' distance is above %.1f", c.n, got, c.bound)
		}
	}
}

// All 24 orders of 4 windows must come equally often: 99.99% point of 23 degrees.
func TestSmallOrdersAreUniform(t *testing.T) {
	s := NewSampler(4, 5)
	counts := map[string]int{}
	for e := range 24000 {
		counts[fmt.Sprint(epochOrder(s, e))]++
	}
	if len(counts) != 24 {
		t.Fatalf("%d of 24 orders occur", len(counts))
	}
	flat := make([]int, 0, 24)
	for _, c := range counts {
		flat = append(flat, c)
	}
	if got := chiSquare(flat); got > 55.5 {
		t.Errorf("chi-square of the 24 orders is %.1f", got)
	}
}

func TestSamplerSteps(t *testing.T) {
	s := NewSampler(10, 0)
	for _, c := range []struct {
		epochs, batch int
		want          int64
	}{{1, 5, 2}, {1, 3, 4}, {3, 10, 3}, {2, 32, 1}, {0, 4, 0}} {
		if got := s.Steps(c.epochs, c.batch); got != c.want {
			t.Errorf("%d epochs of 10 in batches of %d: %d steps, want %d", c.epochs, c.batch, got, c.want)
		}
	}
}

func TestStreamBelowIsInRangeAndEven(t *testing.T) {
	var s stream
	counts := make([]int, 7)
	for range 70000 {
		counts[s.below(7)]++
	}
	if got := chiSquare(counts); got > 27.9 {
		t.Errorf("chi-square %.1f with 6 degrees of freedom", got)
	}
}

// The first outputs of SplitMix64 seeded with 1234567, as published with Java's
// SplittableRandom and used as test vectors since.
func TestStreamIsSplitMix64(t *testing.T) {
	s := stream{state: 1234567}
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := s.next(); got != want {
			t.Errorf("output %d is %d, want %d", i, got, want)
		}
	}
}

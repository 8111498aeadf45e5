package cpu

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/conformance"
	"ddp/model/compute/ref"
)

func open(t testing.TB, isa string, threads int) compute.Backend {
	t.Helper()
	b, err := New(Options{ISA: isa, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestConforms holds every path of this machine against the reference.
func TestConforms(t *testing.T) {
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			if err := conformance.Run(context.Background(), open(t, isa, 1), ref.New(), report(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestThreadsDoNotMatter wants the same bits from 1, 2, 3 and 7 threads.
func TestThreadsDoNotMatter(t *testing.T) {
	for _, isa := range ISAs() {
		for _, threads := range []int{2, 3, 7} {
			t.Run(fmt.Sprintf("%s %d threads", isa, threads), func(t *testing.T) {
				if err := conformance.Threads(context.Background(), open(t, isa, 1), open(t, isa, threads), report(t)); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func report(t *testing.T) func(conformance.Result) {
	return func(r conformance.Result) {
		if !r.Pass() {
			t.Errorf("%s %s: error %.3g, tolerance %.3g, %v", r.Op, r.Shape, r.MaxErr, r.Tolerance, r.Err)
		}
	}
}

// TestProductSizes sweeps the sizes around a tile, and past every block.
func TestProductSizes(t *testing.T) {
	oracle := ref.New()
	for _, isa := range ISAs() {
		b := open(t, isa, 2)
		var sizes [][3]int
		for i := 1; i <= 70; i += 3 {
			sizes = append(sizes, [3]int{i, 71 - i, (i*37)%69 + 1})
		}
		sizes = append(sizes, [3]int{449, 513, 65}, [3]int{30, 1025, 40}, [3]int{3, 8, 4099})
		for _, s := range sizes {
			m, k, n := s[0], s[1], s[2]
			x, w := b.Alloc(m*k), b.Alloc(k*n)
			for i := range x.Host() {
				x.Host()[i] = float32(i*7919%13 - 6)
			}
			for i := range w.Host() {
				w.Host()[i] = float32(i*104729%11 - 5)
			}
			got, want := b.Alloc(m*n), oracle.Alloc(m*n)
			b.Linear(got, x, w, compute.Buffer{}, m, k, n)
			oracle.Linear(want, x, w, compute.Buffer{}, m, k, n)
			for i, g := range got.Host() {
				if g != want.Host()[i] { // small integers: exact
					t.Fatalf("%s %v: element %d is %v, want %v", isa, s, i, g, want.Host()[i])
				}
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(Options{ISA: "altivec", Threads: 1}); err == nil || !strings.Contains(err.Error(), "no altivec (it has generic") {
		t.Errorf("unknown ISA: %v", err)
	}
	if _, err := New(Options{Threads: 0}); err == nil {
		t.Error("0 threads were accepted")
	}
}

// BenchmarkLinear is a product of 1024^3; metrics: GFLOP/s and share of the core's peak.
func BenchmarkLinear(b *testing.B) {
	const n = 1024
	for _, isa := range ISAs() {
		b.Run(isa, func(b *testing.B) {
			be := open(b, isa, 1)
			y, x, w := be.Alloc(n*n), be.Alloc(n*n), be.Alloc(n*n)
			for i := range x.Host() {
				x.Host()[i], w.Host()[i] = float32(i%7), float32(i%5)
			}
			for b.Loop() {
				be.Linear(y, x, w, compute.Buffer{}, n, n, n)
			}
			rate := 2 * float64(n*n*n) * float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(rate/1e9, "GFLOP/s")
			b.ReportMetric(100*rate/PeakFLOPS(isa), "%peak")
		})
	}
}

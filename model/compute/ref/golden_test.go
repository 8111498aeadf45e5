package ref

import (
	"math"
	"testing"
	"unsafe"

	"ddp/model/compute"
)

// of is a buffer with these values.
func of(x ...float32) compute.Buffer { return compute.HostBuffer(x) }

// same wants values within 1e-6, relative above 1.
func same(t *testing.T, name string, got compute.Buffer, want ...float64) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("%s has %d values, want %d", name, got.Len(), len(want))
	}
	for i, w := range want {
		if g := float64(got.Host()[i]); !(math.Abs(g-w) <= 1e-6*math.Max(1, math.Abs(w))) {
			t.Errorf("%s[%d] is %v, want %v", name, i, g, w)
		}
	}
}

func TestAlloc(t *testing.T) {
	for _, n := range []int{1, 15, 16, 17, 1000} {
		b := New().Alloc(n)
		if b.Len() != n || uintptr(unsafe.Pointer(b.Pointer()))%64 != 0 {
			t.Errorf("Alloc(%d): %d values at %p", n, b.Len(), b.Pointer())
		}
		for i, v := range b.Host() {
			if v != 0 {
				t.Fatalf("Alloc(%d)[%d] is %v", n, i, v)
			}
		}
	}
	if !New().Alloc(0).Absent() {
		t.Error("Alloc(0) is present")
	}
}

func TestFlat(t *testing.T) {
	x := of(1, 2, 3)
	New().Add(x, of(10, 20, 30))
	same(t, "sum", x, 11, 22, 33)
	New().Copy(x, of(7, 8, 9))
	same(t, "copy", x, 7, 8, 9)
	New().Zero(x)
	same(t, "zero", x, 0, 0, 0)
}

func TestEmbedAddsTokenAndPosition(t *testing.T) {
	out := zeroes(8)
	New().Embed(out, of(1, 2, 3, 4, 5, 6), of(10, 20, 30, 40, 50, 60), []int32{2, 0, 1, 1}, 2, 2, 2, compute.Dropout{})
	same(t, "out", out, 15, 26, 31, 42, 13, 24, 33, 44)
}

func TestLayerNormOfOneToFour(t *testing.T) {
	out, mean, rstd := zeroes(4), zeroes(1), zeroes(1)
	New().LayerNorm(out, mean, rstd, of(1, 2, 3, 4), of(1, 1, 2, 2), of(0, 1, 0, 1), 1, 4)
	same(t, "out", out, -1.34163542, 1-0.44721181, 2*0.44721181, 1+2*1.34163542)
	same(t, "mean", mean, 2.5)
	same(t, "rstd", rstd, 0.89442361)
}

func TestLinearByHand(t *testing.T) {
	y := zeroes(4)
	New().Linear(y, of(1, 2, 3, 4), of(5, 6, 7, 8), of(10, 20), 2, 2, 2)
	same(t, "y", y, 29, 42, 53, 70)
	New().LinearResidual(y, y, of(1, 2, 3, 4), of(5, 6, 7, 8), compute.Buffer{}, 2, 2, 2, compute.Dropout{})
	same(t, "residual", y, 48, 64, 96, 120)
}

// TestGELUValues: x·Phi(x) from tables of the normal distribution, and the
// tanh form evaluated independently.
func TestGELUValues(t *testing.T) {
	x := of(-1e4, -3, -1, 0, 0.5, 1, 3, 1e4)
	y, pre := zeroes(8), zeroes(8)
	New().LinearGELU(y, pre, x, of(1), compute.Buffer{}, 8, 1, 1, compute.GELUExact)
	same(t, "exact", y, 0, -0.0040496941, -0.1586552539, 0, 0.3457312306, 0.8413447461, 2.9959503059, 1e4)
	New().LinearGELU(y, pre, x, of(1), compute.Buffer{}, 8, 1, 1, compute.GELUTanh)
	same(t, "tanh", y, 0, -0.0036373921, -0.1588080094, 0, 0.3457140098, 0.8411919906, 2.9963626079, 1e4)
	same(t, "pre", pre, -1e4, -3, -1, 0, 0.5, 1, 3, 1e4)
}

func TestDropoutFollowsKeep(t *testing.T) {
	const m, c = 7, 5
	d := compute.Dropout{P: 0.75, Seed: 11, FirstSample: 2, RowsPer: 3}
	dy, dx := zeroes(m*c), zeroes(m*c)
	var want []float64
	for i := range dy.Host() {
		dy.Host()[i] = float32(i + 1)
		r, channel := i/c, i%c
		w := 0.0
		if d.Keep(r/3, (r%3)*c+channel) {
			w = 4 * float64(i+1)
		}
		want = append(want, w)
	}
	New().DropoutGrad(dx, dy, m, c, d)
	same(t, "dx", dx, want...)
	New().DropoutGrad(dy, dy, m, c, d)
	same(t, "dx in place", dy, want...)
}

func TestCrossEntropyByHand(t *testing.T) {
	losses, logits := zeroes(4), of(
		5, 5, 5, 5, // uniform
		1e4, -1e4, 0, 0, // as wrong as can be
		math.MaxFloat32, -math.MaxFloat32, 0, 0, // as right as can be
		1, 2, 3, 4) // masked
	New().CrossEntropy(losses, logits, []int32{3, 1, 0, -1}, 4, 4, true)
	same(t, "loss", losses, math.Log(4), 2e4, 0, 0)
	same(t, "gradient", logits, 0.25, 0.25, 0.25, -0.75, 1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// TestAdamWByHand takes two steps with the arithmetic written out.
func TestAdamWByHand(t *testing.T) {
	a := compute.AdamW{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Decay: 0.1, GradScale: 2, Correction1: 0.1, Correction2: 0.01}
	p, m, v := of(1), of(0), of(0)
	New().AdamW(p, of(0.25), m, v, a)
	same(t, "m", m, 0.05)   // 0.1*0.5
	same(t, "v", v, 0.0025) // 0.01*0.25
	same(t, "p", p, 0.89)   // 1 - 0.1*(0.5/0.5 + 0.1*1)
	a.Correction1, a.Correction2 = 0.19, 0.0199
	New().AdamW(p, of(-0.5), m, v, a)
	same(t, "m", m, -0.055)      // 0.9*0.05 - 0.1
	same(t, "v", v, 0.012475)    // 0.99*0.0025 + 0.01
	same(t, "p", p, 0.917660773) // 0.89 - 0.1*(-0.289473684/0.791760308 + 0.089)
	still := of(2)
	New().AdamW(still, of(0), of(0), of(0), compute.AdamW{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, GradScale: 1, Correction1: 0.1, Correction2: 0.01})
	same(t, "without a gradient", still, 2)
}

// TestSumSquaresIsATree: block sums 2^54, 1, 2, 2 and 1 round differently in
// every other order.
func TestSumSquaresIsATree(t *testing.T) {
	x := zeroes(4*compute.SumBlock + 1)
	for block, values := range [][]float32{{1 << 27}, {1}, {1, 1}, {1, 1}, {1}} {
		copy(x.Host()[block*compute.SumBlock:], values)
	}
	const big = 1 << 54
	if got, want := New().SumSquares(x), float64(big+4); got != want {
		t.Errorf("sum is 2^54 + %v, want + %v", got-big, want-big)
	}
	if got := New().SumSquares(compute.Buffer{}); got != 0 {
		t.Errorf("the sum of nothing is %v", got)
	}
	if got := New().SumSquares(of(1e30, 1e30)); math.Abs(got/2e60-1) > 1e-6 {
		t.Errorf("1e30 twice: %v", got)
	}
}

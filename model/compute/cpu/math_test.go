package cpu

import (
	"fmt"
	"math"
	"testing"

	"ddp/model/compute"
)

// ulp is the distance of float32 values near x, the least normal one's below it.
func ulp(x float64) float64 {
	_, exponent := math.Frexp(max(math.Abs(x), 0x1p-126))
	return math.Ldexp(1, exponent-24)
}

// sweep are n values from lo to hi.
func sweep(b compute.Backend, n int, lo, hi float64) compute.Buffer {
	x := b.Alloc(n)
	for i := range x.Host() {
		x.Host()[i] = float32(lo + (hi-lo)*float64(i)/float64(n-1))
	}
	return x
}

// within holds got[i] against want(x[i]), which may be off by bound.
func within(t *testing.T, name string, x, got []float32, want func(x float64) float64, bound func(x, want float64) float64) {
	t.Helper()
	for i := range got {
		w := want(float64(x[i]))
		if off := math.Abs(float64(got[i]) - w); !(off <= bound(float64(x[i]), w)) {
			t.Fatalf("%s(%v) is %v, want %v: off by %.2f ulp, may be %.2f", name, x[i], got[i], w, off/ulp(w), bound(float64(x[i]), w)/ulp(w))
		}
	}
}

// ulps bounds by so many.
func ulps(n float64) func(x, want float64) float64 {
	return func(_, want float64) float64 { return n * ulp(want) }
}

func exactGELU(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }

func exactGELUGrad(x float64) float64 {
	return 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// tanhArgument is u of x(1+tanh u)/2 = x/(1+exp(-2u)).
func tanhArgument(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

func tanhGELU(x float64) float64 { return x / (1 + math.Exp(-2*tanhArgument(x))) }

func tanhGELUGrad(x float64) float64 {
	u := tanhArgument(x)
	s, steep := 1/(1+math.Exp(-2*u)), math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
	return s + x*s/(1+math.Exp(2*u))*2*steep
}

// TestGELU: the exact form is right to 8 ulp even far below 0, where it is tiny;
// the other's error grows with the tanh's argument. Gradients are right to 2^-22.
func TestGELU(t *testing.T) {
	const n = 300_001
	tanhBound := func(x, want float64) float64 { return (4+8*math.Abs(tanhArgument(x)))*ulp(want) + 1e-36 }
	gradBound := func(_, _ float64) float64 { return 0x1p-22 }
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		x, one := sweep(b, n, -12.5, 12.5), ones(b, 1)
		y, pre, grad, dw := b.Alloc(n), b.Alloc(n), b.Alloc(n), b.Alloc(n)
		for kind, f := range map[compute.GELU]struct {
			name        string
			value, grad func(float64) float64
			bound       func(x, want float64) float64
		}{
			compute.GELUExact: {"exact GELU", exactGELU, exactGELUGrad, ulps(8)},
			compute.GELUTanh:  {"tanh GELU", tanhGELU, tanhGELUGrad, tanhBound},
		} {
			b.LinearGELU(y, pre, one, x, compute.Buffer{}, 1, 1, n, kind) // 1 times each x
			within(t, isa+" "+f.name, x.Host(), y.Host(), f.value, f.bound)
			b.LinearGELUGrad(grad, dw, compute.Buffer{}, one, y, x, ones(b, n), 1, n, 1, kind)
			within(t, isa+" gradient of "+f.name, x.Host(), grad.Host(), f.grad, gradBound)
		}
	}
}

// extremes are float32 values of every kind, the last three +Inf, NaN and -Inf.
func extremes() []float32 {
	var x []float32
	for e := -149; e <= 127; e++ {
		x = append(x, float32(math.Ldexp(1, e)), float32(-math.Ldexp(1, e)), float32(math.Ldexp(1.5, e)))
	}
	for i := -1000; i <= 1000; i++ {
		x = append(x, float32(i)/10)
	}
	return append(x, 0, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()), float32(math.Inf(-1)))
}

// limit is f, with the limits that its float64 formula loses to 0 times infinity.
func limit(f func(float64) float64, rising float64) func(float64) float64 {
	return func(x float64) float64 {
		switch {
		case x > 50 && rising == 1:
			return 1
		case x > 50:
			return x
		case x < -50:
			return 0
		}
		return f(x)
	}
}

// TestGELUOfExtremes: from the least denormal to the largest number values and
// gradients are those of the sweep or their limits, and a NaN stays one. At -Inf,
// and for gradients at either infinity, a NaN is as good: 0 times infinity.
func TestGELUOfExtremes(t *testing.T) {
	x := extremes()
	n := len(x)
	finite := n - 2
	value := func(x, want float64) float64 { return (4+8*min(math.Abs(tanhArgument(x)), 90))*ulp(want) + 1e-36 }
	grad := func(_, _ float64) float64 { return 0x1p-22 }
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		y, pre, dx, dw := b.Alloc(n), b.Alloc(n), b.Alloc(n), b.Alloc(n)
		for kind, f := range []struct{ value, grad func(float64) float64 }{
			compute.GELUTanh: {tanhGELU, tanhGELUGrad}, compute.GELUExact: {exactGELU, exactGELUGrad},
		} {
			b.LinearGELU(y, pre, ones(b, 1), compute.HostBuffer(x), compute.Buffer{}, 1, 1, n, compute.GELU(kind))
			b.LinearGELUGrad(dx, dw, compute.Buffer{}, ones(b, 1), y, compute.HostBuffer(x), ones(b, n), 1, n, 1, compute.GELU(kind))
			name := fmt.Sprintf("%s GELU %d", isa, kind)
			for i := range finite {
				want := limit(f.value, 0)(float64(x[i]))
				if float64(y.Host()[i]) == want {
					continue // infinity too
				}
				within(t, name, x[i:i+1], y.Host()[i:i+1], limit(f.value, 0), value)
			}
			within(t, name+" gradient", x[:finite-1], dx.Host()[:finite-1], limit(f.grad, 1), grad)
			if v, g := y.Host()[finite], dx.Host()[finite]; v == v || g == g {
				t.Errorf("%s: NaN became %v, gradient %v", name, v, g)
			}
		}
	}
}

// TestSoftmaxOfExtremes: -Inf has no weight, however many logits share a vector
// with it; a NaN or +Inf anywhere makes the loss NaN.
func TestSoftmaxOfExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		for _, v := range []int{2, 3, 16, 17, 65, 130} {
			for at := range v {
				for _, odd := range []float32{-inf, -math.MaxFloat32, float32(math.NaN()), inf} {
					logits, loss := b.Alloc(v), b.Alloc(1)
					logits.Host()[at] = odd
					b.CrossEntropy(loss, logits, []int32{int32((at + 1) % v)}, 1, v, true)
					got, p := float64(loss.Host()[0]), logits.Host()[at]
					if broken := odd != odd || odd == inf; broken && !math.IsNaN(got) {
						t.Fatalf("%s: %v among %d logits gives the loss %v", isa, odd, v, got)
					} else if want := math.Log(float64(v - 1)); !broken && (math.Abs(got-want) > ulp(want) || p != 0) {
						t.Fatalf("%s: %v among %d logits: loss %v, want %v, probability %v", isa, odd, v, got, want, p)
					}
				}
			}
		}
	}
}

// TestSoftmaxOfTwo sweeps the exponential and the logarithm: logits 0 and -x
// have the probability e^-x/(1+e^-x) and the loss log(1+e^-x).
func TestSoftmaxOfTwo(t *testing.T) {
	const n = 200_001
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		x, logits, loss := sweep(b, n, 0, 87), b.Alloc(2*n), b.Alloc(n)
		for i, v := range x.Host() {
			logits.Host()[2*i+1] = -v
		}
		b.CrossEntropy(loss, logits, make([]int32, n), n, 2, true)
		second := make([]float32, n)
		for i := range second {
			second[i] = logits.Host()[2*i+1]
		}
		within(t, isa+" softmax", x.Host(), second, func(x float64) float64 { return 1 / (1 + math.Exp(x)) }, ulps(3))
		within(t, isa+" loss", x.Host(), loss.Host(), func(x float64) float64 { return math.Log1p(math.Exp(-x)) },
			func(_, _ float64) float64 { return 3 * 0x1p-24 })
	}
}

// TestLossOfEqualLogits is the logarithm of whole numbers.
func TestLossOfEqualLogits(t *testing.T) {
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		for v := 1; v < 5000; v += 1 + v/7 {
			loss := b.Alloc(1)
			b.CrossEntropy(loss, b.Alloc(v), []int32{int32(v - 1)}, 1, v, false)
			within(t, isa+" log", []float32{float32(v)}, loss.Host(), math.Log, ulps(1))
		}
	}
}

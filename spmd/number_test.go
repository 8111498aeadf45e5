package spmd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// nearestBFloat16 rounds by searching: the candidate of least distance, the
// even one of two.
func nearestBFloat16(f float32) BFloat16 {
	low := BFloat16(math.Float32bits(f) >> 16) // towards zero
	high := low + 1
	value := func(b BFloat16) float64 {
		if b&0x7fff == 0x7f80 { // where the next binade would begin
			return math.Copysign(math.Ldexp(1, 128), float64(b.Float32()))
		}
		return float64(b.Float32())
	}
	down, up := math.Abs(float64(f)-value(low)), math.Abs(value(high)-float64(f))
	if up < down || up == down && high&1 == 0 {
		return high
	}
	return low
}

func TestBFloat16Rounds(t *testing.T) {
	for _, c := range []struct {
		f    float32
		bits BFloat16
	}{{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {1, 0x3f80}, {-2, 0xc000}, {1 + 1.0/256, 0x3f80}, {1 + 3.0/256, 0x3f82}, {math.MaxFloat32, 0x7f80}, {float32(math.Inf(-1)), 0xff80}} {
		if got := FromFloat32(c.f); got != c.bits {
			t.Errorf("%v: %#x instead of %#x", c.f, got, c.bits)
		}
	}
	r := rand.New(rand.NewPCG(4, 4))
	for range 100_000 {
		f := math.Float32frombits(r.Uint32())
		if f != f || math.IsInf(float64(f), 0) {
			continue
		}
		if got, want := FromFloat32(f), nearestBFloat16(f); got != want {
			t.Fatalf("%v: %#x instead of %#x", f, got, want)
		}
	}
	if v := FromFloat32(math.Float32frombits(0x7f800001)).Float32(); v == v {
		t.Errorf("a NaN became %v", v)
	}
}

func TestCombine(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		op      Op
		a, b, x float32
	}{{Sum, 1, 2, 3}, {Average, 1, 2, 3}, {Min, 1, -2, -2}, {Max, 1, -2, 1}, {Product, 3, -2, -6}, {Min, nan, 1, nan}, {Max, 1, nan, nan}} {
		for n := range 20 {
			a, b, dst := make([]float32, n), make([]float32, n), make([]float32, n+1)
			for i := range a {
				a[i], b[i] = c.a, c.b
			}
			combine(float32Type, c.op, bytesOf(dst[:n]), bytesOf(a), bytesOf(b))
			for i, v := range dst[:n] {
				if v != c.x && !(v != v && c.x != c.x) {
					t.Errorf("%v of %v and %v, element %d of %d: %v", c.op, c.a, c.b, i, n, v)
				}
			}
			if dst[n] != 0 {
				t.Errorf("%v wrote past %d elements", c.op, n)
			}
		}
	}
}

func TestNamedTypes(t *testing.T) {
	type celsius float32
	type count int64
	if dtypeOf[celsius]() != float32Type || dtypeOf[count]() != int64Type || dtypeOf[BFloat16]() != bfloat16Type {
		t.Error("a named type is not its underlying one")
	}
	x := []celsius{1.5}
	succeed(t, []*World{Solo()}, func(w *World) error { return AllReduce(t.Context(), w, x, Average) })
	if x[0] != 1.5 {
		t.Errorf("got %v", x)
	}
}

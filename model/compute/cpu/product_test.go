package cpu

import (
	"fmt"
	"slices"
	"testing"

	"ddp/model/compute"
)

// integers fills x with small whole numbers, whose products' sums are exact in
// float32, so that results can be compared with ==.
func integers(x []float32, seed int) {
	for i := range x {
		x[i] = float32((i*7919+seed*104729)%11 - 5)
	}
}

// dumb is c[m,n] = a[m,k]·b[k,n], where element (i, j) of a is a(i, j).
func dumb(m, k, n int, a, b func(i, j int) float32) []float32 {
	c := make([]float32, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				c[i*n+j] += a(i, p) * b(p, j)
			}
		}
	}
	return c
}

func rows(x compute.Buffer, columns int) func(i, j int) float32 {
	h := x.Host()
	return func(i, j int) float32 { return h[i*columns+j] }
}

func transposed(x compute.Buffer, columns int) func(i, j int) float32 {
	h := x.Host()
	return func(i, j int) float32 { return h[j*columns+i] }
}

// allocator gives a buffer of n values.
type allocator func(n int) compute.Buffer

// same fails where got is not want.
func same(t *testing.T, what string, got compute.Buffer, want []float32) {
	t.Helper()
	for i, g := range got.Host() {
		if g != want[i] {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g, want[i])
		}
	}
}

// checkProducts runs every orientation of one size: x·w and x·wᵀ forward, and
// the gradients, which are products with either operand transposed.
func checkProducts(t *testing.T, b compute.Backend, alloc allocator, m, k, n int) {
	t.Helper()
	size := fmt.Sprintf("%s %dx%dx%d", b.ISA(), m, k, n)
	x, w, wt, dy, bias := alloc(m*k), alloc(k*n), alloc(n*k), alloc(m*n), alloc(n)
	for i, v := range []compute.Buffer{x, w, wt, dy, bias} {
		integers(v.Host(), i)
	}
	y, dx, dw, dwt, dbias := alloc(m*n), alloc(m*k), alloc(k*n), alloc(n*k), alloc(n)
	integers(dwt.Host(), 9)

	b.Linear(y, x, w, bias, m, k, n)
	want := dumb(m, k, n, rows(x, k), rows(w, n))
	for i := range want {
		want[i] += bias.Host()[i%n]
	}
	same(t, size+" Linear", y, want)

	b.Logits(y, x, wt, m, k, n)
	same(t, size+" Logits", y, dumb(m, k, n, rows(x, k), transposed(wt, k)))

	b.LinearGrad(dx, dw, dbias, dy, x, w, m, k, n)
	same(t, size+" LinearGrad dx", dx, dumb(m, n, k, rows(dy, n), transposed(w, n)))
	same(t, size+" LinearGrad dw", dw, dumb(k, m, n, transposed(x, k), rows(dy, n)))
	same(t, size+" LinearGrad dbias", dbias, dumb(1, m, n, func(int, int) float32 { return 1 }, rows(dy, n)))

	before := slices.Clone(dwt.Host())
	b.LogitsGrad(dx, dwt, dy, x, wt, m, k, n, true)
	same(t, size+" LogitsGrad dx", dx, dumb(m, n, k, rows(dy, n), rows(wt, k)))
	want = dumb(n, m, k, transposed(dy, n), rows(x, k))
	for i := range want {
		want[i] += before[i]
	}
	same(t, size+" LogitsGrad dw", dwt, want)
}

// goMemory gives buffers of Go's own memory, which operations take too.
func goMemory(n int) compute.Buffer { return compute.HostBuffer(make([]float32, n)) }

// TestProducts sweeps m and n from 1 to 70, each against each, and goes past every
// block: of the sum (512), of rows (240), of columns packed at once (384) and in
// all (4096).
func TestProducts(t *testing.T) {
	sizes := [][3]int{{239, 511, 33}, {240, 512, 48}, {241, 513, 49}, {481, 1025, 17}, {30, 2049, 40}, {5, 7, 383}, {5, 7, 385},
		{9, 520, 769}, {3, 8, 4095}, {3, 8, 4097}, {2, 515, 4099}, {7, 4097, 3}, {1, 1, 1}, {1, 1000, 1}, {1000, 1, 1}, {1, 1, 1000}}
	for i := 1; i <= 70; i++ {
		for j := 1; j <= 70; j++ {
			sizes = append(sizes, [3]int{i, (i*31+j*17)%37 + 1, j})
		}
	}
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			b := open(t, isa, 2)
			for at, s := range sizes {
				if at < 16 || at%len(ISAs()) == 0 || !testing.Short() {
					checkProducts(t, b, goMemory, s[0], s[1], s[2])
				}
			}
		})
	}
}

// TestProductsStayInside runs every orientation between pages that may not be touched.
func TestProductsStayInside(t *testing.T) {
	sizes := [][3]int{{241, 513, 49}, {7, 8, 4097}, {65, 514, 65}}
	for i := 1; i <= 70; i += 2 {
		sizes = append(sizes, [3]int{i, (i*37)%69 + 1, 71 - i}, [3]int{(i*11)%53 + 1, i, (i*29)%67 + 1})
	}
	for _, isa := range ISAs() {
		for _, atEnd := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s at end %v", isa, atEnd), func(t *testing.T) {
				b := open(t, isa, 1)
				for _, s := range sizes {
					checkProducts(t, b, fence{t, atEnd}.values, s[0], s[1], s[2])
				}
			})
		}
	}
}

// TestResidualInPlace wants the same bits whether or not y is the residual,
// also where the sum over k is kept between its parts.
func TestResidualInPlace(t *testing.T) {
	for _, isa := range ISAs() {
		b := open(t, isa, 2)
		for _, s := range [][3]int{{13, 100, 51}, {13, 1100, 51}, {250, 513, 100}} {
			m, k, n := s[0], s[1], s[2]
			x, w, bias, y, residual := goMemory(m*k), goMemory(k*n), goMemory(n), goMemory(m*n), goMemory(m*n)
			for _, v := range []compute.Buffer{x, w, bias, residual} {
				for i := range v.Host() {
					v.Host()[i] = wave(i)
				}
			}
			for _, drop := range []compute.Dropout{{}, {P: 0.3, Seed: 5, RowsPer: 7}} {
				b.LinearResidual(y, residual, x, w, bias, m, k, n, drop)
				inPlace := compute.HostBuffer(slices.Clone(residual.Host()))
				b.LinearResidual(inPlace, inPlace, x, w, bias, m, k, n, drop)
				same(t, fmt.Sprintf("%s %dx%dx%d drop %v", isa, m, k, n, drop.P), inPlace, y.Host())
			}
		}
	}
}

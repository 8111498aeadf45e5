package cpu

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ddp/model/compute"
)

// fence places buffers against pages that may not be touched: a single value
// read or written too far ends the test.
type fence struct {
	t     *testing.T
	atEnd bool // against the page after them, else the one before
}

func (f fence) buffer(n int, fill func(i int) float32) compute.Buffer {
	page := unix.Getpagesize()
	inner := (4*n + page - 1) / page * page
	mem, err := unix.Mmap(-1, 0, inner+2*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = unix.Munmap(mem) })
	if err := unix.Mprotect(mem[page:page+inner], unix.PROT_READ|unix.PROT_WRITE); err != nil {
		f.t.Fatal(err)
	}
	at := page
	if f.atEnd {
		at += inner - 4*n
	}
	b := compute.HostBuffer(unsafe.Slice((*float32)(unsafe.Pointer(&mem[at])), n))
	for i := range b.Host() {
		b.Host()[i] = fill(i)
	}
	return b
}

// wave is some value for every i, both signs, below 1.
func wave(i int) float32 { return float32(math.Sin(float64(i)*0.7 + 0.3)) }

// values are n fenced values.
func (f fence) values(n int) compute.Buffer { return f.buffer(n, wave) }

// TestNothingOutsideIsTouched runs every operation at odd sizes between such pages.
func TestNothingOutsideIsTouched(t *testing.T) {
	drop := compute.Dropout{P: 0.3, Seed: 5, Step: 1, RowsPer: 3}
	for _, isa := range ISAs() {
		for _, atEnd := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s at end %v", isa, atEnd), func(t *testing.T) {
				b, f := open(t, isa, 2), fence{t, atEnd}
				for _, s := range [][2]int{{1, 1}, {3, 7}, {5, 33}, {50, 17}, {7, 300}} {
					fencedRows(b, f, s[0], s[1], drop)
					fencedProducts(b, f, s[0], s[1], drop)
				}
				for _, s := range [][2]int{{1, 1}, {7, 3}, {49, 17}, {97, 20}, {101, 64}} {
					fencedAttention(b, f, s[0], s[1], drop)
				}
				for _, n := range []int{1, 15, 17, 4099} {
					fencedFlat(b, f, n)
				}
			})
		}
	}
}

func fencedRows(b compute.Backend, f fence, m, c int, drop compute.Dropout) {
	x, y, w, bias := f.values(m*c), f.values(m*c), f.values(c), f.values(c)
	mean, rstd := f.values(m), f.values(m)
	b.LayerNorm(y, mean, rstd, x, w, bias, m, c)
	b.LayerNorm(y, mean, rstd, x, w, compute.Buffer{}, m, c)
	b.LayerNormGrad(y, f.values(c), f.values(c), x, x, w, mean, rstd, m, c)
	b.DropoutGrad(y, x, m, c, drop)
	b.DropoutGrad(y, y, m, c, drop)
	tokens := make([]int32, m)
	b.Embed(y, w, x, tokens, 1, m, c, drop)
	b.EmbedGrad(f.values(c), f.values(m*c), y, tokens, 1, m, c, drop)
	b.CrossEntropy(mean, x, tokens, m, c, false)
	b.CrossEntropy(mean, x, tokens, m, c, true)
}

// fencedProducts are those of m rows and c columns, summed over n.
func fencedProducts(b compute.Backend, f fence, m, c int, drop compute.Dropout) {
	const n = 19
	x, w, y, pre, bias := f.values(m*n), f.values(n*c), f.values(m*c), f.values(m*c), f.values(c)
	b.Linear(y, x, w, bias, m, n, c)
	b.LinearGELU(y, pre, x, w, bias, m, n, c, compute.GELUExact)
	b.LinearResidual(y, pre, x, w, bias, m, n, c, drop)
	b.LinearGrad(f.values(m*n), f.values(n*c), f.values(c), y, x, w, m, n, c)
	b.LinearGELUGrad(f.values(m*n), f.values(n*c), f.values(c), y, x, x, w, m, n, c, compute.GELUTanh)
	b.Logits(y, x, w, m, n, c)
	b.LogitsGrad(f.values(m*n), f.values(n*c), y, x, w, m, n, c, true)
}

func fencedAttention(b compute.Backend, f fence, t, d int, drop compute.Dropout) {
	const n, h = 2, 2
	qkv, out, lse := f.values(n*t*3*h*d), f.values(n*t*h*d), f.values(n*h*t)
	for _, p := range []compute.Dropout{drop, {}} {
		b.Attention(out, lse, qkv, n, t, h, d, p)
		b.AttentionGrad(f.values(n*t*3*h*d), f.values(n*t*h*d), qkv, out, lse, n, t, h, d, p)
	}
}

func fencedFlat(b compute.Backend, f fence, n int) {
	p, g, m, v := f.values(n), f.values(n), f.values(n), f.buffer(n, func(int) float32 { return 1 })
	b.AdamW(p, g, m, v, compute.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, GradScale: 1, Correction1: 0.1, Correction2: 0.05})
	b.Add(p, g)
	b.Copy(p, g)
	b.Zero(p)
	b.SumSquares(g)
}

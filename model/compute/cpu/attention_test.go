package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// attentionCase is one attention, its inputs and its dropout.
type attentionCase struct {
	n, t, h, d int
	qkv, dout  []float32
	drop       compute.Dropout
}

func newAttention(n, t, h, d int, p float32) attentionCase {
	a := attentionCase{n: n, t: t, h: h, d: d, qkv: make([]float32, n*t*3*h*d), dout: make([]float32, n*t*h*d)}
	a.drop = compute.Dropout{P: p, Seed: 11, Step: 4, FirstSample: 2, Layer: 1, Site: compute.SiteAttention}
	for i := range a.qkv {
		a.qkv[i] = 2 * wave(i*i%10007)
	}
	for i := range a.dout {
		a.dout[i] = wave(i * 31 % 5003)
	}
	return a
}

type attentionResult struct{ out, lse, dqkv []float32 }

// on runs both directions with b.
func (a attentionCase) on(b compute.Backend) attentionResult {
	place := func(values []float32) compute.Buffer {
		x := b.Alloc(len(values))
		copy(x.Host(), values)
		return x
	}
	qkv, out, lse, dqkv := place(a.qkv), b.Alloc(len(a.dout)), b.Alloc(a.n*a.h*a.t), b.Alloc(len(a.qkv))
	b.Attention(out, lse, qkv, a.n, a.t, a.h, a.d, a.drop)
	b.AttentionGrad(dqkv, place(a.dout), qkv, out, lse, a.n, a.t, a.h, a.d, a.drop)
	return attentionResult{out.Host(), lse.Host(), dqkv.Host()}
}

// near fails where got is further from want than tolerance times their scale.
func near(t *testing.T, name string, got, want []float32, tolerance float64) {
	t.Helper()
	square := 0.0
	for _, w := range want {
		square += float64(w) * float64(w)
	}
	scale := math.Sqrt(square / float64(len(want)))
	for i := range want {
		if off := math.Abs(float64(got[i]) - float64(want[i])); !(off <= tolerance*(scale+math.Abs(float64(want[i])))) {
			t.Fatalf("%s[%d] is %v, want %v", name, i, got[i], want[i])
		}
	}
}

func (r attentionResult) near(t *testing.T, want attentionResult) {
	t.Helper()
	near(t, "out", r.out, want.out, 4e-6)
	near(t, "lse", r.lse, want.lse, 2e-6)
	near(t, "dqkv", r.dqkv, want.dqkv, 2e-5)
}

// TestAttentionAroundTiles: sequences that end on either side of a strip, a tile
// of queries and one of keys, heads of every kind of width.
func TestAttentionAroundTiles(t *testing.T) {
	for _, s := range [][2]int{{1, 256}, {5, 1}, {6, 2}, {8, 31}, {9, 17}, {47, 5}, {48, 33}, {49, 16}, {95, 7}, {96, 64}, {97, 20}, {145, 12}, {193, 40}, {290, 8}} {
		for _, p := range []float32{0, 0.25} {
			a := newAttention(1, s[0], 2, s[1], p)
			want := a.on(ref.New())
			for _, isa := range ISAs() {
				t.Run(fmt.Sprintf("%s T %d D %d drop %v", isa, s[0], s[1], p), func(t *testing.T) { a.on(open(t, isa, 1)).near(t, want) })
			}
		}
	}
}

// TestScoresThatRise makes every tile of keys outdo the one before, so that what
// is already summed must be scaled down, by e^-100 and more at times.
func TestScoresThatRise(t *testing.T) {
	a := newAttention(1, 300, 1, 16, 0)
	for p := range a.t {
		for i := range a.d {
			a.qkv[p*3*a.d+i] = 1 + 0.1*wave(p*i)                                // q
			a.qkv[p*3*a.d+a.d+i] = float32(p)*float32(p)/4000 + 0.1*wave(p+7*i) // k
		}
	}
	want := a.on(ref.New())
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			got := a.on(open(t, isa, 1))
			near(t, "out", got.out, want.out, 5e-5) // scores near 90 carry 90 times the rounding
			near(t, "lse", got.lse, want.lse, 2e-6)
			near(t, "dqkv", got.dqkv, want.dqkv, 2e-4)
		})
	}
}

// TestLaterNaNsChangeNothingEarlier fills all from some position on with NaN and
// infinities, at places inside and at the borders of strips and tiles: outputs,
// lse and gradients of queries before it keep their bits.
func TestLaterNaNsChangeNothingEarlier(t *testing.T) {
	for _, d := range []int{16, 24} {
		for _, p := range []float32{0, 0.25} {
			a := newAttention(1, 150, 1, d, p)
			for _, isa := range ISAs() {
				t.Run(fmt.Sprintf("%s D %d drop %v", isa, d, p), func(t *testing.T) {
					b := open(t, isa, 1)
					want := a.on(b)
					for _, cut := range []int{1, 5, 6, 7, 8, 31, 47, 48, 50, 95, 96, 97, 111, 149} {
						spoiled := a
						spoiled.qkv, spoiled.dout = spoil(a.qkv, cut*3*d), spoil(a.dout, cut*d)
						got := spoiled.on(b)
						for name, pair := range map[string][2][]float32{
							"out": {got.out[:cut*d], want.out[:cut*d]}, "lse": {got.lse[:cut], want.lse[:cut]},
						} {
							if !slices.Equal(pair[0], pair[1]) {
								t.Errorf("%s before %d sees what is later", name, cut)
							}
						}
						for row := range cut {
							if at := row * 3 * d; !slices.Equal(got.dqkv[at:at+d], want.dqkv[at:at+d]) {
								t.Errorf("gradient of query %d sees position %d or later", row, cut)
							}
						}
					}
				})
			}
		}
	}
}

// spoil replaces all values from cut on.
func spoil(x []float32, cut int) []float32 {
	x = slices.Clone(x)
	for i := cut; i < len(x); i++ {
		x[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[i%3]
	}
	return x
}

// TestEarlierNaNsStayWhereTheyAre: keys after a broken query get gradients from
// themselves on alone.
func TestEarlierNaNsStayWhereTheyAre(t *testing.T) {
	const broken, d = 50, 16
	a := newAttention(1, 150, 1, d, 0)
	for _, isa := range ISAs() {
		b := open(t, isa, 1)
		want := a.on(b)
		spoiled := a
		spoiled.dout = slices.Clone(a.dout)
		for i := broken * d; i < (broken+1)*d; i++ {
			spoiled.dout[i] = float32(math.NaN())
		}
		from := (broken + 1) * 3 * d
		if got := spoiled.on(b); !slices.Equal(got.dqkv[from:], want.dqkv[from:]) {
			t.Errorf("%s: gradients after position %d see it", isa, broken)
		}
	}
}

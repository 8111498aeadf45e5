package ref

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ddp/model/compute"
)

// drops are the dropouts of a differentiable operation: none, and several
// samples of two rows.
var drops = []compute.Dropout{{}, {P: 0.3, Seed: 1<<40 + 5, Step: 3, FirstSample: 9, Layer: 2, Site: compute.SiteAttention, RowsPer: 2}}

// random gives n values of deviation 1 on a grid of 1/1024, so that a step of a
// finite difference is exact.
func random(rng *rand.Rand, n int) compute.Buffer {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Round(1024*rng.NormFloat64()) / 1024)
	}
	return compute.HostBuffer(x)
}

// zeroes is a buffer to be overwritten.
func zeroes(n int) compute.Buffer { return compute.HostBuffer(make([]float32, n)) }

// weighted is the scalar whose gradient with respect to out is dout.
func weighted(out, dout compute.Buffer) float64 {
	sum := 0.0
	for i, v := range out.Host() {
		sum += float64(v) * float64(dout.Host()[i])
	}
	return sum
}

// checkSlope compares gradient with fourth-order central differences of loss,
// for every element of x.
func checkSlope(t *testing.T, name string, loss func() float64, x, gradient compute.Buffer) {
	t.Helper()
	const h = 1.0 / 32
	for i, at := range x.Host() {
		value := func(step float32) float64 {
			x.Host()[i] = at + step
			defer func() { x.Host()[i] = at }()
			return loss()
		}
		slope := (8*(value(h)-value(-h)) - (value(2*h) - value(-2*h))) / (12 * h)
		if got := float64(gradient.Host()[i]); !(math.Abs(got-slope) <= 2e-4*(1+math.Abs(slope))) {
			t.Errorf("%s[%d]: gradient %.6f, slope %.6f", name, i, got, slope)
		}
	}
}

// less is a - b: what an accumulating operation added.
func less(a, b compute.Buffer) compute.Buffer {
	out := zeroes(a.Len())
	for i, v := range a.Host() {
		out.Host()[i] = v - b.Host()[i]
	}
	return out
}

func clone(x compute.Buffer) compute.Buffer {
	return compute.HostBuffer(append([]float32(nil), x.Host()...))
}

func TestEmbedSlopes(t *testing.T) {
	const b, n, c, v = 3, 2, 5, 4
	tokens := []int32{1, 3, 3, 3, 0, 1}
	for _, drop := range drops {
		rng := rand.New(rand.NewPCG(1, 1))
		out, wte, wpe, dout := zeroes(b*n*c), random(rng, v*c), random(rng, (n+1)*c), random(rng, b*n*c)
		oldTE, oldPE := random(rng, v*c), random(rng, (n+1)*c)
		dwte, dwpe := clone(oldTE), clone(oldPE)
		New().EmbedGrad(dwte, dwpe, dout, tokens, b, n, c, drop)
		loss := func() float64 {
			New().Embed(out, wte, wpe, tokens, b, n, c, drop)
			return weighted(out, dout)
		}
		checkSlope(t, fmt.Sprintf("P %v wte", drop.P), loss, wte, less(dwte, oldTE))
		checkSlope(t, fmt.Sprintf("P %v wpe", drop.P), loss, wpe, less(dwpe, oldPE))
	}
}

func TestLayerNormSlopes(t *testing.T) {
	const m, c = 5, 7
	for _, withBias := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(2, 2))
		out, mean, rstd := zeroes(m*c), zeroes(m), zeroes(m)
		x, w, dout, old := random(rng, m*c), random(rng, c), random(rng, m*c), random(rng, m*c)
		var bias, dbias compute.Buffer
		if withBias {
			bias, dbias = random(rng, c), zeroes(c)
		}
		loss := func() float64 {
			New().LayerNorm(out, mean, rstd, x, w, bias, m, c)
			return weighted(out, dout)
		}
		loss() // fills mean and rstd
		dx, dw := clone(old), zeroes(c)
		New().LayerNormGrad(dx, dw, dbias, dout, x, w, mean, rstd, m, c)
		checkSlope(t, "x", loss, x, less(dx, old))
		checkSlope(t, "weight", loss, w, dw)
		checkSlope(t, "bias", loss, bias, dbias)
	}
}

// TestLinearSlopes goes through residual and dropout, with their gradients.
func TestLinearSlopes(t *testing.T) {
	const m, k, n = 5, 3, 4
	for _, drop := range drops {
		rng := rand.New(rand.NewPCG(3, 3))
		y, residual, x, w, bias, dy := zeroes(m*n), random(rng, m*n), random(rng, m*k), random(rng, k*n), random(rng, n), random(rng, m*n)
		dz, dx, dw, dbias := zeroes(m*n), zeroes(m*k), zeroes(k*n), zeroes(n)
		New().DropoutGrad(dz, dy, m, n, drop)
		New().LinearGrad(dx, dw, dbias, dz, x, w, m, k, n)
		loss := func() float64 {
			New().LinearResidual(y, residual, x, w, bias, m, k, n, drop)
			return weighted(y, dy)
		}
		checkSlope(t, "x", loss, x, dx)
		checkSlope(t, "w", loss, w, dw)
		checkSlope(t, "bias", loss, bias, dbias)
		checkSlope(t, "residual", loss, residual, dy)
	}
}

// TestLinearGELUSlopes: y = gelu(pre)·w + bias, where LinearGELU with the unit
// matrix computes gelu(pre).
func TestLinearGELUSlopes(t *testing.T) {
	const m, k, n = 4, 5, 3
	unit := zeroes(k * k)
	for i := range k {
		unit.Host()[i*k+i] = 1
	}
	for _, kind := range []compute.GELU{compute.GELUTanh, compute.GELUExact} {
		rng := rand.New(rand.NewPCG(4, 4))
		pre, w, bias, dy := random(rng, m*k), random(rng, k*n), random(rng, n), random(rng, m*n)
		act, unused, y := zeroes(m*k), zeroes(m*k), zeroes(m*n)
		loss := func() float64 {
			New().LinearGELU(act, unused, pre, unit, compute.Buffer{}, m, k, k, kind)
			New().Linear(y, act, w, bias, m, k, n)
			return weighted(y, dy)
		}
		loss() // fills act
		dpre, dw, dbias := zeroes(m*k), zeroes(k*n), zeroes(n)
		New().LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w, m, k, n, kind)
		checkSlope(t, "pre", loss, pre, dpre)
		checkSlope(t, "w", loss, w, dw)
		checkSlope(t, "bias", loss, bias, dbias)
	}
}

func TestAttentionSlopes(t *testing.T) {
	const b, n, h, d = 2, 5, 2, 3
	for _, drop := range drops {
		rng := rand.New(rand.NewPCG(5, 5))
		qkv, dout := random(rng, b*n*3*h*d), random(rng, b*n*h*d)
		out, lse, dqkv := zeroes(b*n*h*d), zeroes(b*h*n), zeroes(b*n*3*h*d)
		loss := func() float64 {
			New().Attention(out, lse, qkv, b, n, h, d, drop)
			return weighted(out, dout)
		}
		loss() // fills out and lse
		New().AttentionGrad(dqkv, dout, qkv, out, lse, b, n, h, d, drop)
		checkSlope(t, fmt.Sprintf("P %v qkv", drop.P), loss, qkv, dqkv)
	}
}

func TestLogitsSlopes(t *testing.T) {
	const m, c, v = 4, 3, 5
	rng := rand.New(rand.NewPCG(6, 6))
	logits, x, w, dlogits := zeroes(m*v), random(rng, m*c), random(rng, v*c), random(rng, m*v)
	loss := func() float64 {
		New().Logits(logits, x, w, m, c, v)
		return weighted(logits, dlogits)
	}
	dx, dw, old := zeroes(m*c), random(rng, v*c), random(rng, v*c)
	New().LogitsGrad(dx, dw, dlogits, x, w, m, c, v, false)
	checkSlope(t, "x", loss, x, dx)
	checkSlope(t, "w", loss, w, dw)
	added := clone(old)
	New().LogitsGrad(dx, added, dlogits, x, w, m, c, v, true)
	checkSlope(t, "w, accumulated", loss, w, less(added, old))
}

func TestCrossEntropySlopes(t *testing.T) {
	const m, v = 4, 5
	targets := []int32{2, -1, 0, 4}
	logits, losses := random(rand.New(rand.NewPCG(7, 7)), m*v), zeroes(m)
	gradient := clone(logits)
	New().CrossEntropy(losses, gradient, targets, m, v, true)
	checkSlope(t, "logits", func() float64 {
		New().CrossEntropy(losses, logits, targets, m, v, false)
		sum := 0.0
		for _, l := range losses.Host() {
			sum += float64(l)
		}
		return sum
	}, logits, gradient)
}

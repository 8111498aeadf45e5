package conformance

import (
	"math"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// mistake is a reference in which one thing is wrong with each of ops.
type mistake struct {
	name string
	b    compute.Backend
	ops  []string
}

// TestMistakesAreCaught: the errors that authors of kernels make.
func TestMistakesAreCaught(t *testing.T) {
	list := []mistake{
		{"bias forgotten", noBias{ref.New()}, []string{"Linear", "LinearGELU", "LinearResidual", "LayerNorm"}},
		{"the other GELU", otherGELU{ref.New()}, []string{"LinearGELU", "LinearGELUGrad"}},
		{"cleared first", clears{ref.New()}, []string{"Add", "EmbedGrad", "LayerNormGrad", "LinearResidual", "DropoutGrad"}},
		{"never accumulated", accumulates{ref.New(), false}, []string{"LogitsGrad"}},
		{"always accumulated", accumulates{ref.New(), true}, []string{"LogitsGrad"}},
		{"mean square less squared mean", squaredMean{ref.New()}, []string{"LayerNorm"}},
	}
	list = append(list, dropoutMistakes()...)
	list = append(list, optimizerMistakes()...)
	list = append(list, attentionMistakes()...)
	list = append(list, lossMistakes()...)
	for _, m := range list {
		for _, op := range m.ops {
			if !caught(op, m.b) {
				t.Errorf("%s: %s was not caught", op, m.name)
			}
		}
	}
}

type noBias struct{ compute.Backend }

func (w noBias) LayerNorm(out, mean, rstd, x, weight, _ compute.Buffer, m, c int) {
	w.Backend.LayerNorm(out, mean, rstd, x, weight, compute.Buffer{}, m, c)
}

func (w noBias) Linear(y, x, wt, _ compute.Buffer, m, k, n int) {
	w.Backend.Linear(y, x, wt, compute.Buffer{}, m, k, n)
}

func (w noBias) LinearGELU(y, pre, x, wt, _ compute.Buffer, m, k, n int, kind compute.GELU) {
	w.Backend.LinearGELU(y, pre, x, wt, compute.Buffer{}, m, k, n, kind)
}

func (w noBias) LinearResidual(y, residual, x, wt, _ compute.Buffer, m, k, n int, drop compute.Dropout) {
	w.Backend.LinearResidual(y, residual, x, wt, compute.Buffer{}, m, k, n, drop)
}

type otherGELU struct{ compute.Backend }

func (w otherGELU) LinearGELU(y, pre, x, wt, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	w.Backend.LinearGELU(y, pre, x, wt, bias, m, k, n, 1-kind)
}

func (w otherGELU) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, wt compute.Buffer, m, k, n int, kind compute.GELU) {
	w.Backend.LinearGELUGrad(dpre, dw, dbias, dy, act, pre, wt, m, k, n, 1-kind)
}

// clears loses what is in an output that is an input as well.
type clears struct{ compute.Backend }

func (w clears) Add(dst, src compute.Buffer) {
	w.Zero(dst)
	w.Backend.Add(dst, src)
}

func (w clears) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	w.Zero(dwpe.Slice(0, t*c))
	w.Backend.EmbedGrad(dwte, dwpe, dout, tokens, b, t, c, drop)
}

func (w clears) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	w.Zero(dx)
	w.Backend.LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd, m, c)
}

func (w clears) LinearResidual(y, residual, x, wt, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	w.Zero(y)
	w.Backend.LinearResidual(y, residual, x, wt, bias, m, k, n, drop)
}

func (w clears) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	w.Zero(dx)
	w.Backend.DropoutGrad(dx, dy, m, c, drop)
}

type accumulates struct {
	compute.Backend
	always bool
}

func (w accumulates) LogitsGrad(dx, dw, dlogits, x, wt compute.Buffer, m, c, v int, _ bool) {
	w.Backend.LogitsGrad(dx, dw, dlogits, x, wt, m, c, v, w.always)
}

// squaredMean takes the variance as E[x²] - E[x]² in float32.
type squaredMean struct{ compute.Backend }

func (w squaredMean) LayerNorm(out, mean, rstd, x, weight, bias compute.Buffer, m, c int) {
	w.Backend.LayerNorm(out, mean, rstd, x, weight, bias, m, c)
	for r := range m {
		sum, squares := float32(0), float32(0)
		for _, v := range x.Host()[r*c : (r+1)*c] {
			sum += v
			squares += v * v
		}
		mu := sum / float32(c)
		rstd.Host()[r] = float32(1 / math.Sqrt(float64(max(0, squares/float32(c)-mu*mu))+1e-5))
	}
}

// stepped changes AdamW's arguments.
type stepped struct {
	compute.Backend
	change func(*compute.AdamW)
}

func (w stepped) AdamW(p, g, m, v compute.Buffer, a compute.AdamW) {
	w.change(&a)
	w.Backend.AdamW(p, g, m, v, a)
}

// summed replaces SumSquares.
type summed struct {
	compute.Backend
	of func(x []float32) float64
}

func (w summed) SumSquares(x compute.Buffer) float64 { return w.of(x.Host()) }

func optimizerMistakes() []mistake {
	var list []mistake
	for name, change := range map[string]func(*compute.AdamW){
		"without decay":      func(a *compute.AdamW) { a.Decay = 0 },
		"without epsilon":    func(a *compute.AdamW) { a.Eps = 0 },
		"epsilon inside":     func(a *compute.AdamW) { a.Eps *= float32(math.Sqrt(float64(a.Correction2))) },
		"gradient unscaled":  func(a *compute.AdamW) { a.GradScale = 1 },
		"without correction": func(a *compute.AdamW) { a.Correction1 = 1 },
		"one correction":     func(a *compute.AdamW) { a.Correction2 = a.Correction1 },
		"one beta":           func(a *compute.AdamW) { a.Beta2 = a.Beta1 },
	} {
		list = append(list, mistake{name, stepped{ref.New(), change}, []string{"AdamW"}})
	}
	inFloat32 := func(x []float32) float64 {
		sum := float32(0)
		for _, v := range x {
			sum += v * v
		}
		return float64(sum)
	}
	lastLost := func(x []float32) float64 {
		return ref.New().SumSquares(compute.HostBuffer(x[:len(x)/8*8]))
	}
	return append(list, mistake{"float32", summed{ref.New(), inFloat32}, []string{"SumSquares"}},
		mistake{"last values lost", summed{ref.New(), lastLost}, []string{"SumSquares"}})
}

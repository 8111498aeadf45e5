package conformance

import (
	"fmt"

	"ddp/model/compute"
)

// rowCases are the operations on m rows of c channels, as m/t samples of t rows.
func rowCases(m, c int) []testCase {
	shape := fmt.Sprintf("%dx%d", m, c)
	x, w, bias := arg{"x", input, m * c, normal(1, 2)}, arg{"weight", input, c, normal(2, 1)}, arg{"bias", input, c, normal(3, 1)}
	mean, rstd := arg{"mean", output, m, nil}, arg{"rstd", output, m, nil}
	out := []testCase{
		{"LayerNorm", shape, 2e-6, []arg{{"out", output, m * c, nil}, mean, rstd, x, w, bias}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.LayerNorm(v[0], v[1], v[2], v[3], v[4], v[5], m, c)
			return 0
		}},
		{"LayerNorm", shape + " without bias", 2e-6, []arg{{"out", output, m * c, nil}, mean, rstd, x, w}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.LayerNorm(v[0], v[1], v[2], v[3], v[4], compute.Buffer{}, m, c)
			return 0
		}},
		{"LayerNormGrad", shape, 4e-6 + dot(m), []arg{{"dx", updated, m * c, normal(4, 1)}, {"dweight", output, c, nil}, {"dbias", output, c, nil},
			{"dout", input, m * c, normal(5, 1)}, x, w, {"mean", input, m, normal(6, 0.3)}, {"rstd", input, m, positive(7)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.LayerNormGrad(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], m, c)
				return 0
			}},
		{"LayerNormGrad", shape + " without bias", 4e-6 + dot(m), []arg{{"dx", updated, m * c, normal(4, 1)}, {"dweight", output, c, nil},
			{"dout", input, m * c, normal(5, 1)}, x, w, {"mean", input, m, normal(6, 0.3)}, {"rstd", input, m, positive(7)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.LayerNormGrad(v[0], v[1], compute.Buffer{}, v[2], v[3], v[4], v[5], v[6], m, c)
				return 0
			}},
	}
	for _, p := range []float32{0, 0.3} {
		out = append(out, dropCases(m, c, p, shape)...)
		out = append(out, embedCases(m, c, p)...)
	}
	return out
}

func dropCases(m, c int, p float32, shape string) []testCase {
	d := draw(p, max(1, m/3))
	return []testCase{
		{"DropoutGrad", fmt.Sprintf("%s drop %v", shape, p), epsilon * 2, []arg{{"dx", output, m * c, nil}, {"dy", input, m * c, normal(1, 1)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.DropoutGrad(v[0], v[1], m, c, d)
				return 0
			}},
		{"DropoutGrad", fmt.Sprintf("%s drop %v in place", shape, p), epsilon * 2, []arg{{"dx", updated, m * c, normal(1, 1)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.DropoutGrad(v[0], v[0], m, c, d)
				return 0
			}},
	}
}

// embedCases embed two samples of t tokens; positions go past t in the table.
func embedCases(t, c int, p float32) []testCase {
	const vocabulary = 11
	tokens := symbols(1, 2*t, vocabulary, false)
	shape := fmt.Sprintf("2x%dx%d drop %v", t, c, p)
	d := draw(p, t)
	return []testCase{
		{"Embed", shape, epsilon * 4, []arg{{"out", output, 2 * t * c, nil}, {"wte", input, vocabulary * c, normal(1, 1)}, {"wpe", input, (t + 2) * c, normal(2, 1)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.Embed(v[0], v[1], v[2], tokens, 2, t, c, d)
				return 0
			}},
		{"EmbedGrad", shape, dot(t), []arg{{"dwte", updated, vocabulary * c, normal(1, 1)}, {"dwpe", updated, (t + 2) * c, normal(2, 1)}, {"dout", input, 2 * t * c, normal(3, 1)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				b.EmbedGrad(v[0], v[1], v[2], tokens, 2, t, c, d)
				return 0
			}},
	}
}

// attentionCases are one forward and one backward pass. scale widens the scores.
func attentionCases(n, t, h, d int, p float32, scale float64) []testCase {
	c := h * d
	shape := fmt.Sprintf("%dx%dx%dx%d drop %v", n, t, h, d, p)
	drop := draw(p, 0)
	qkv := arg{"qkv", input, n * t * 3 * c, normal(1, scale)}
	forward := func(b compute.Backend, v []compute.Buffer) { b.Attention(v[0], v[1], v[2], n, t, h, d, drop) }
	// A score's rounding error is exponentiated: the tolerance grows with the scores.
	tolerance := 4e-6 + 8*epsilon*scale*scale*float64(d)
	return []testCase{
		{"Attention", shape, tolerance, []arg{{"out", output, n * t * c, nil}, {"lse", output, n * h * t, nil}, qkv},
			func(b compute.Backend, v []compute.Buffer) float64 {
				forward(b, v)
				return 0
			}},
		{"AttentionGrad", shape, 4 * tolerance, []arg{{"out", output, n * t * c, nil}, {"lse", output, n * h * t, nil}, qkv,
			{"dqkv", output, n * t * 3 * c, nil}, {"dout", input, n * t * c, normal(2, 1)}},
			func(b compute.Backend, v []compute.Buffer) float64 {
				forward(b, v) // the backward pass needs its own back end's lse
				b.AttentionGrad(v[3], v[4], v[2], v[0], v[1], n, t, h, d, drop)
				return 0
			}},
	}
}

func lossCases(m, v int, scale float64) []testCase {
	targets := symbols(1, m, v, m > 2)
	var out []testCase
	for _, grad := range []bool{false, true} {
		role := input
		if grad {
			role = updated
		}
		out = append(out, testCase{"CrossEntropy", fmt.Sprintf("%dx%d scale %v grad %v", m, v, scale, grad), 4e-6,
			[]arg{{"loss", output, m, nil}, {"logits", role, m * v, normal(2, scale)}},
			func(b compute.Backend, x []compute.Buffer) float64 {
				b.CrossEntropy(x[0], x[1], targets, m, v, grad)
				return 0
			}})
	}
	return out
}

func headCases(m, c, v int) []testCase {
	shape := fmt.Sprintf("%dx%dx%d", m, c, v)
	x, w := arg{"x", input, m * c, normal(1, 1)}, arg{"w", input, v * c, normal(2, 1)}
	out := []testCase{{"Logits", shape, dot(c), []arg{{"logits", output, m * v, nil}, x, w}, func(b compute.Backend, y []compute.Buffer) float64 {
		b.Logits(y[0], y[1], y[2], m, c, v)
		return 0
	}}}
	for _, accumulate := range []bool{false, true} {
		dw := arg{"dw", output, v * c, nil}
		if accumulate {
			dw = arg{"dw", updated, v * c, normal(3, 1)}
		}
		out = append(out, testCase{"LogitsGrad", fmt.Sprintf("%s accumulate %v", shape, accumulate), dot(max(m, v)),
			[]arg{{"dx", output, m * c, nil}, dw, {"dlogits", input, m * v, normal(4, 1)}, x, w},
			func(b compute.Backend, y []compute.Buffer) float64 {
				b.LogitsGrad(y[0], y[1], y[2], y[3], y[4], m, c, v, accumulate)
				return 0
			}})
	}
	return out
}

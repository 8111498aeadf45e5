package conformance

import (
	"fmt"
	"math"

	"ddp/model/compute"
)

// epsilon is float32's rounding unit.
const epsilon = 1.0 / (1 << 24)

// dot is the tolerance of a sum of k products: rounding errors that add up like
// a random walk, with room for the spread.
func dot(k int) float64 { return (8 + 4*math.Sqrt(float64(k))) * epsilon }

// cases are all cases that are compared with the reference.
func cases() []testCase {
	var out []testCase
	out = append(out, flatCases()...)
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 13, 11}, {14, 32, 32}, {15, 257, 33}, {64, 48, 144}, {29, 300, 65}, {233, 71, 97}} {
		out = append(out, linearCases(s[0], s[1], s[2])...)
	}
	for _, s := range [][2]int{{1, 1}, {3, 7}, {33, 48}, {70, 129}, {5, 768}} {
		out = append(out, rowCases(s[0], s[1])...)
	}
	for _, s := range [][4]int{{1, 1, 1, 1}, {2, 5, 3, 8}, {1, 17, 2, 16}, {2, 33, 2, 24}, {1, 64, 1, 32}, {1, 40, 2, 64}, {1, 37, 1, 80}, {1, 20, 1, 128}, {1, 300, 1, 20}} {
		for _, p := range []float32{0, 0.3} {
			out = append(out, attentionCases(s[0], s[1], s[2], s[3], p, 1)...)
		}
	}
	out = append(out, attentionCases(1, 19, 2, 8, 0, 30)...) // scores in the hundreds
	for _, s := range [][2]int{{1, 1}, {4, 3}, {19, 65}, {5, 1031}} {
		for _, scale := range []float64{1, 3000} {
			out = append(out, lossCases(s[0], s[1], scale)...)
		}
	}
	for _, s := range [][3]int{{1, 3, 5}, {19, 33, 65}, {40, 48, 1031}} {
		out = append(out, headCases(s[0], s[1], s[2])...)
	}
	return out
}

// largeCases are past every block size of the back ends; too slow for the reference.
func largeCases() []testCase {
	var out []testCase
	out = append(out, linearCases(517, 600, 523)...)
	out = append(out, rowCases(700, 256)...)
	out = append(out, attentionCases(3, 130, 4, 48, 0.1, 1)...)
	out = append(out, headCases(300, 128, 300)...)
	return out
}

func flatCases() []testCase {
	var out []testCase
	for _, n := range []int{1, 7, 16, 4095, 4097, 70001} {
		shape := fmt.Sprint(n)
		out = append(out,
			testCase{"Zero", shape, 0, []arg{{"dst", output, n, nil}}, func(b compute.Backend, v []compute.Buffer) float64 {
				b.Zero(v[0])
				return 0
			}},
			testCase{"Copy", shape, 0, []arg{{"dst", output, n, nil}, {"src", input, n, normal(1, 1)}}, func(b compute.Backend, v []compute.Buffer) float64 {
				b.Copy(v[0], v[1])
				return 0
			}},
			testCase{"Add", shape, 0, []arg{{"dst", updated, n, normal(1, 1)}, {"src", input, n, normal(2, 1)}}, func(b compute.Backend, v []compute.Buffer) float64 {
				b.Add(v[0], v[1])
				return 0
			}},
			testCase{"SumSquares", shape, 1e-9, []arg{{"x", input, n, normal(1, 3)}}, func(b compute.Backend, v []compute.Buffer) float64 {
				return b.SumSquares(v[0])
			}},
			adamwCase(n))
	}
	return out
}

func adamwCase(n int) testCase {
	a := compute.AdamW{LR: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, GradScale: 0.5, Correction1: 0.271, Correction2: 0.142625}
	return testCase{"AdamW", fmt.Sprint(n), 16 * epsilon,
		[]arg{{"p", updated, n, normal(1, 1)}, {"g", input, n, normal(2, 1)}, {"m", updated, n, normal(3, 1)}, {"v", updated, n, positive(4)}},
		func(b compute.Backend, v []compute.Buffer) float64 {
			b.AdamW(v[0], v[1], v[2], v[3], a)
			return 0
		}}
}

func linearCases(m, k, n int) []testCase {
	shape := fmt.Sprintf("%dx%dx%d", m, k, n)
	x, w := arg{"x", input, m * k, normal(1, 1)}, arg{"w", input, k * n, normal(2, 1)}
	bias, y := arg{"bias", input, n, normal(3, 1)}, arg{"y", output, m * n, nil}
	dy, pre := arg{"dy", input, m * n, normal(4, 1)}, arg{"pre", input, m * k, normal(5, 2)}
	dx, dw, db := arg{"dx", output, m * k, nil}, arg{"dw", output, k * n, nil}, arg{"dbias", output, n, nil}
	none := compute.Buffer{}
	out := []testCase{
		{"Linear", shape, dot(k), []arg{y, x, w, bias}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.Linear(v[0], v[1], v[2], v[3], m, k, n)
			return 0
		}},
		{"Linear", shape + " without bias", dot(k), []arg{y, x, w}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.Linear(v[0], v[1], v[2], none, m, k, n)
			return 0
		}},
		{"LinearGrad", shape, dot(max(m, n)), []arg{dx, dw, db, dy, x, w}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.LinearGrad(v[0], v[1], v[2], v[3], v[4], v[5], m, k, n)
			return 0
		}},
		{"LinearGrad", shape + " without bias", dot(max(m, n)), []arg{dx, dw, dy, x, w}, func(b compute.Backend, v []compute.Buffer) float64 {
			b.LinearGrad(v[0], v[1], none, v[2], v[3], v[4], m, k, n)
			return 0
		}},
	}
	for kind, name := range map[compute.GELU]string{compute.GELUTanh: " tanh", compute.GELUExact: " exact"} {
		out = append(out,
			testCase{"LinearGELU", shape + name, dot(k) + 1e-6, []arg{y, {"pre", output, m * n, nil}, x, w, bias}, func(b compute.Backend, v []compute.Buffer) float64 {
				b.LinearGELU(v[0], v[1], v[2], v[3], v[4], m, k, n, kind)
				return 0
			}},
			testCase{"LinearGELUGrad", shape + name, dot(max(m, n)) + 2e-6, []arg{{"dpre", output, m * k, nil}, dw, db, dy, {"act", input, m * k, normal(6, 1)}, pre, w},
				func(b compute.Backend, v []compute.Buffer) float64 {
					b.LinearGELUGrad(v[0], v[1], v[2], v[3], v[4], v[5], v[6], m, k, n, kind)
					return 0
				}})
	}
	return append(out, residualCases(m, k, n, shape, x, w, bias)...)
}

func residualCases(m, k, n int, shape string, x, w, bias arg) []testCase {
	var out []testCase
	for _, p := range []float32{0, 0.3} {
		d := draw(p, max(1, m/3)) // several samples, the last one shorter
		out = append(out,
			testCase{"LinearResidual", fmt.Sprintf("%s drop %v", shape, p), dot(k), []arg{{"y", output, m * n, nil}, {"residual", input, m * n, normal(7, 1)}, x, w, bias},
				func(b compute.Backend, v []compute.Buffer) float64 {
					b.LinearResidual(v[0], v[1], v[2], v[3], v[4], m, k, n, d)
					return 0
				}},
			testCase{"LinearResidual", fmt.Sprintf("%s drop %v in place", shape, p), dot(k), []arg{{"y", updated, m * n, normal(7, 1)}, x, w, bias},
				func(b compute.Backend, v []compute.Buffer) float64 {
					b.LinearResidual(v[0], v[0], v[1], v[2], v[3], m, k, n, d)
					return 0
				}})
	}
	return out
}

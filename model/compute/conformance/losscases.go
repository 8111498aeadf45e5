package conformance

import (
	"fmt"

	"ddp/model/compute"
)

// lossCases are losses of logits of ordinary size, up to about 1e4, all ±1e4,
// and all alike, with and without gradient, for every kind of mask.
func lossCases(m, v int) []testCase {
	var list []testCase
	for _, grad := range []bool{false, true} {
		list = append(list,
			crossEntropy(m, v, "", normal(2, 1), aThird, grad),
			crossEntropy(m, v, " unmasked to 1e4", normal(2, 3000), nothing, grad),
			crossEntropy(m, v, " ±1e4", signs(2, 1e4), aThird, grad),
			crossEntropy(m, v, " uniform", func(int) float32 { return -7 }, nothing, grad),
			crossEntropy(m, v, " all masked", normal(2, 1), everything, grad))
	}
	return list
}

func crossEntropy(m, v int, name string, logits func(int) float32, mask masking, grad bool) testCase {
	targets := symbols(1, m, v, mask)
	role := in
	if grad {
		role, name = inout, name+" with gradient"
	}
	return testCase{op: "CrossEntropy", shape: fmt.Sprintf("%dx%d%s", m, v, name), tolerance: 2e-6,
		args: []arg{out("loss", m), role("logits", m*v, logits)},
		call: func(b compute.Backend, x []compute.Buffer) { b.CrossEntropy(x[0], x[1], targets, m, v, grad) }}
}

// headCases are the product with the vocabulary and its gradient.
func headCases(m, c, v int) []testCase {
	shape := fmt.Sprintf("%dx%dx%d", m, c, v)
	x, w := in("x", m*c, normal(1, 1)), in("w", v*c, normal(2, 1))
	grad := func(name string, dw arg, accumulate bool) testCase {
		return testCase{op: "LogitsGrad", shape: shape + name, tolerance: dot(max(m, v)), scale: 1,
			args: []arg{out("dx", m*c), dw, in("dlogits", m*v, normal(4, 1)), x, w},
			call: func(b compute.Backend, y []compute.Buffer) {
				b.LogitsGrad(y[0], y[1], y[2], y[3], y[4], m, c, v, accumulate)
			}}
	}
	return []testCase{
		{op: "Logits", shape: shape, tolerance: dot(c), scale: 1, args: []arg{out("logits", m*v), x, w},
			call: func(b compute.Backend, y []compute.Buffer) { b.Logits(y[0], y[1], y[2], m, c, v) }},
		grad("", out("dw", v*c), false),
		grad(" accumulated", inout("dw", v*c, normal(3, 1)), true),
	}
}

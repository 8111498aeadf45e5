package conformance

import (
	"fmt"

	"ddp/model/compute"
)

// normCases are LayerNorm of m rows of c channels and its gradient.
func normCases(m, c int) []testCase {
	list := []testCase{
		layerNorm(m, c, "", normal(1, 2), 2e-6, true),
		layerNorm(m, c, " without bias", normal(1, 2), 2e-6, false),
		// The mean square less the squared mean would be wrong by 1e-3.
		layerNorm(m, c, " far from 0", func(i int) float32 { return 100 + normal(1, 1)(i) }, 1e-4, true),
		// Every row is constant: the variance is 0, and rounding of the mean is magnified by 1/sqrt(1e-5).
		layerNorm(m, c, " constant", func(i int) float32 { return 3.25 * float32(i/c%5) }, 1e-3, true),
	}
	return append(list, layerNormGrad(m, c, "", true), layerNormGrad(m, c, " without bias", false))
}

func layerNorm(m, c int, name string, x func(int) float32, tolerance float64, withBias bool) testCase {
	args := []arg{out("out", m*c), out("mean", m), out("rstd", m), in("x", m*c, x), in("weight", c, normal(2, 1))}
	if withBias {
		args = append(args, in("bias", c, normal(3, 1)))
	}
	return testCase{op: "LayerNorm", shape: fmt.Sprintf("%dx%d%s", m, c, name), tolerance: tolerance, args: args,
		call: func(b compute.Backend, v []compute.Buffer) {
			b.LayerNorm(v[0], v[1], v[2], v[3], v[4], optional(v, 5), m, c)
		}}
}

func layerNormGrad(m, c int, name string, withBias bool) testCase {
	args := []arg{inout("dx", m*c, normal(4, 1)), out("dweight", c), in("dout", m*c, normal(5, 1)), in("x", m*c, normal(1, 2)),
		in("weight", c, normal(2, 1)), in("mean", m, normal(6, 0.3)), in("rstd", m, positive(7))}
	if withBias {
		args = append(args, out("dbias", c))
	}
	return testCase{op: "LayerNormGrad", shape: fmt.Sprintf("%dx%d%s", m, c, name), tolerance: 1e-6 + dot(m), args: args,
		call: func(b compute.Backend, v []compute.Buffer) {
			b.LayerNormGrad(v[0], v[1], optional(v, 7), v[2], v[3], v[4], v[5], v[6], m, c)
		}}
}

// optional is v[i], or absent when there is none.
func optional(v []compute.Buffer, i int) compute.Buffer {
	if i < len(v) {
		return v[i]
	}
	return compute.Buffer{}
}

func dropCases(m, c int) []testCase {
	var list []testCase
	for _, p := range probabilities {
		d, shape := draw(p, max(1, m/3)), fmt.Sprintf("%dx%d drop %v", m, c, p)
		list = append(list,
			testCase{op: "DropoutGrad", shape: shape, tolerance: 2 * epsilon, args: []arg{out("dx", m*c), in("dy", m*c, normal(1, 1))},
				call: func(b compute.Backend, v []compute.Buffer) { b.DropoutGrad(v[0], v[1], m, c, d) }},
			testCase{op: "DropoutGrad", shape: shape + " in place", tolerance: 2 * epsilon, args: []arg{inout("dx", m*c, normal(1, 1))},
				call: func(b compute.Backend, v []compute.Buffer) { b.DropoutGrad(v[0], v[0], m, c, d) }})
	}
	return list
}

// embedCases embed n samples of t tokens; the table of positions goes past t.
func embedCases(n, t, c, vocabulary int) []testCase {
	tokens := symbols(1, n*t, vocabulary, nothing)
	te, pe := vocabulary*c, (t+2)*c
	var list []testCase
	for _, p := range probabilities {
		d, shape := draw(p, t), fmt.Sprintf("%dx%dx%d of %d drop %v", n, t, c, vocabulary, p)
		list = append(list,
			testCase{op: "Embed", shape: shape, tolerance: 4 * epsilon,
				args: []arg{out("out", n*t*c), in("wte", te, normal(1, 1)), in("wpe", pe, normal(2, 1))},
				call: func(b compute.Backend, v []compute.Buffer) { b.Embed(v[0], v[1], v[2], tokens, n, t, c, d) }},
			testCase{op: "EmbedGrad", shape: shape, tolerance: dot(t),
				args: []arg{inout("dwte", te, normal(1, 1)), inout("dwpe", pe, normal(2, 1)), in("dout", n*t*c, normal(3, 1))},
				call: func(b compute.Backend, v []compute.Buffer) { b.EmbedGrad(v[0], v[1], v[2], tokens, n, t, c, d) }})
	}
	return list
}

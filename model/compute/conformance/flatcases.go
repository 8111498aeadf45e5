package conformance

import (
	"fmt"

	"ddp/model/compute"
)

// flatCases are the operations that see no shape.
func flatCases() []testCase {
	var list []testCase
	for _, n := range []int{1, 7, 16, 4095, 4097, 70001} {
		list = append(list, moveCases(n)...)
		list = append(list, sumCases(n)...)
		list = append(list, adamwCases(n)...)
	}
	return list
}

func moveCases(n int) []testCase {
	shape := fmt.Sprint(n)
	return []testCase{
		{op: "Zero", shape: shape, args: []arg{out("dst", n)},
			call: func(b compute.Backend, v []compute.Buffer) { b.Zero(v[0]) }},
		{op: "Copy", shape: shape, args: []arg{out("dst", n), in("src", n, normal(1, 1))},
			call: func(b compute.Backend, v []compute.Buffer) { b.Copy(v[0], v[1]) }},
		{op: "Add", shape: shape, args: []arg{inout("dst", n, normal(1, 1)), in("src", n, normal(2, 1))},
			call: func(b compute.Backend, v []compute.Buffer) { b.Add(v[0], v[1]) }},
	}
}

// sumCases sum squares of ordinary size and such that float32 cannot hold.
func sumCases(n int) []testCase {
	var list []testCase
	for _, size := range []float64{3, 1e20, 1e-30} {
		list = append(list, testCase{op: "SumSquares", shape: fmt.Sprintf("%d of %g", n, size), tolerance: 1e-12,
			args:   []arg{in("x", n, normal(1, size))},
			number: func(b compute.Backend, v []compute.Buffer) float64 { return b.SumSquares(v[0]) }})
	}
	return list
}

// adamwCases make every term of the update visible: a large rate and epsilon,
// ordinary ones at the first step, and no gradient at all.
func adamwCases(n int) []testCase {
	large := compute.AdamW{LR: 0.5, Beta1: 0.9, Beta2: 0.95, Eps: 0.1, Decay: 0.3, GradScale: 0.5, Correction1: 0.271, Correction2: 0.142625}
	first := compute.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.1, GradScale: 3, Correction1: 0.1, Correction2: 1e-3}
	made := func(name string, a compute.AdamW, g, m, v func(int) float32) testCase {
		return testCase{op: "AdamW", shape: fmt.Sprintf("%d %s", n, name), tolerance: 16 * epsilon,
			args: []arg{inout("p", n, normal(1, 1)), in("g", n, g), inout("m", n, m), inout("v", n, v)},
			call: func(b compute.Backend, x []compute.Buffer) { b.AdamW(x[0], x[1], x[2], x[3], a) }}
	}
	return []testCase{
		made("", large, normal(2, 1), normal(3, 1), positive(4)),
		made("first step", first, normal(2, 1e-3), zero, zero),
		made("no gradient", first, zero, zero, zero),
	}
}

package conformance

import (
	"fmt"
	"math"

	"ddp/model/compute"
)

// attentionCases are one forward and one backward pass; deviation is that of
// queries, keys and values.
func attentionCases(n, t, h, d int, deviation float64) []testCase {
	var list []testCase
	for _, p := range probabilities {
		list = append(list, attentionPair(n, t, h, d, deviation, draw(p, 0))...)
	}
	return list
}

func attentionPair(n, t, h, d int, deviation float64, drop compute.Dropout) []testCase {
	c := h * d
	shape := fmt.Sprintf("%dx%dx%dx%d drop %v", n, t, h, d, drop.P)
	if deviation != 1 {
		shape += fmt.Sprintf(" deviation %v", deviation)
	}
	qkv := in("qkv", n*t*3*c, normal(1, deviation))
	forward := func(b compute.Backend, v []compute.Buffer) { b.Attention(v[0], v[1], v[2], n, t, h, d, drop) }
	// A score's rounding error is exponentiated: the tolerance grows with the scores.
	tolerance := 2e-6 + 8*epsilon*deviation*deviation*math.Sqrt(float64(d))
	return []testCase{
		{op: "Attention", shape: shape, tolerance: tolerance, args: []arg{out("out", n*t*c), out("lse", n*h*t), qkv}, call: forward},
		// The backward pass gets out and lse of its own back end.
		{op: "AttentionGrad", shape: shape, tolerance: 4 * tolerance, prepare: forward,
			args: []arg{in("out", n*t*c, nil), in("lse", n*h*t, nil), qkv, out("dqkv", n*t*3*c), in("dout", n*t*c, normal(2, 1))},
			call: func(b compute.Backend, v []compute.Buffer) {
				b.AttentionGrad(v[3], v[4], v[2], v[0], v[1], n, t, h, d, drop)
			}},
	}
}

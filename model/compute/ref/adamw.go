package ref

import (
	"math"

	"ddp/model/compute"
)

// AdamW takes one step; see compute.AdamW.
func (Backend) AdamW(p, g, m, v compute.Buffer, a compute.AdamW) {
	ps, gs, ms, vs := p.Host(), g.Host(), m.Host(), v.Host()
	b1, b2 := float64(a.Beta1), float64(a.Beta2)
	for i := range ps {
		grad := float64(a.GradScale) * float64(gs[i])
		first := b1*float64(ms[i]) + (1-b1)*grad
		second := b2*float64(vs[i]) + (1-b2)*grad*grad
		move := first/float64(a.Correction1)/(math.Sqrt(second/float64(a.Correction2))+float64(a.Eps)) + float64(a.Decay)*float64(ps[i])
		ps[i] = float32(float64(ps[i]) - float64(a.LR)*move)
		ms[i], vs[i] = float32(first), float32(second)
	}
}

// SumSquares adds blocks of SumBlock squares, then the block sums by a balanced tree.
func (Backend) SumSquares(x compute.Buffer) float64 {
	var blocks []float64
	for rest := x.Host(); len(rest) > 0; {
		n := min(compute.SumBlock, len(rest))
		sum := 0.0
		for _, v := range rest[:n] {
			sum += float64(v) * float64(v)
		}
		blocks = append(blocks, sum)
		rest = rest[n:]
	}
	return tree(blocks)
}

// tree adds neighbours, then neighbours of sums, until one is left.
func tree(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	for len(x) > 1 {
		half := x[:0:0]
		for i := 0; i+1 < len(x); i += 2 {
			half = append(half, x[i]+x[i+1])
		}
		if len(x)%2 == 1 {
			half = append(half, x[len(x)-1])
		}
		x = half
	}
	return x[0]
}

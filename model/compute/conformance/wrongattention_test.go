package conformance

import (
	"math"
	"slices"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// redrawn changes what dropout draws.
type redrawn struct {
	compute.Backend
	change func(*compute.Dropout)
}

func (w redrawn) of(d compute.Dropout) compute.Dropout {
	if d.P > 0 {
		w.change(&d)
	}
	return d
}

func (w redrawn) Embed(out, wte, wpe compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	w.Backend.Embed(out, wte, wpe, tokens, b, t, c, w.of(drop))
}

func (w redrawn) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	w.Backend.EmbedGrad(dwte, dwpe, dout, tokens, b, t, c, w.of(drop))
}

func (w redrawn) LinearResidual(y, residual, x, wt, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	w.Backend.LinearResidual(y, residual, x, wt, bias, m, k, n, w.of(drop))
}

func (w redrawn) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	w.Backend.DropoutGrad(dx, dy, m, c, w.of(drop))
}

func (w redrawn) Attention(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	w.Backend.Attention(out, lse, qkv, b, t, h, d, w.of(drop))
}

func (w redrawn) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	w.Backend.AttentionGrad(dqkv, dout, qkv, out, lse, b, t, h, d, w.of(drop))
}

func dropoutMistakes() []mistake {
	rows := []string{"LinearResidual", "DropoutGrad"}
	all := append([]string{"Embed", "EmbedGrad", "Attention", "AttentionGrad"}, rows...)
	list := []mistake{{"samples of other lengths", redrawn{ref.New(), func(d *compute.Dropout) { d.RowsPer++ }}, rows}}
	for name, change := range map[string]func(*compute.Dropout){
		"nothing dropped":        func(d *compute.Dropout) { d.P = 0 },
		"seed's high half lost":  func(d *compute.Dropout) { d.Seed &= math.MaxUint32 },
		"seed's halves swapped":  func(d *compute.Dropout) { d.Seed = d.Seed<<32 | d.Seed>>32 },
		"step ignored":           func(d *compute.Dropout) { d.Step = 0 },
		"samples counted from 0": func(d *compute.Dropout) { d.FirstSample = 0 },
		"layer ignored":          func(d *compute.Dropout) { d.Layer = 0 },
		"site ignored":           func(d *compute.Dropout) { d.Site = 0 },
	} {
		list = append(list, mistake{name, redrawn{ref.New(), change}, all})
	}
	return list
}

// attends replaces Attention.
type attends struct {
	compute.Backend
	forward func(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout)
}

func (w attends) Attention(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	w.forward(out, lse, qkv, b, t, h, d, drop)
}

// attendsBack changes what AttentionGrad gives.
type attendsBack struct {
	compute.Backend
	after func(dqkv, dout []float32, b, t, h, d int)
}

func (w attendsBack) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	w.Backend.AttentionGrad(dqkv, dout, qkv, out, lse, b, t, h, d, drop)
	w.after(dqkv.Host(), dout.Host(), b, t, h, d)
}

func attentionMistakes() []mistake {
	forward := map[string]func(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout){
		"scores unscaled":        unscaled,
		"mask off by one":        maskOffByOne,
		"later NaN times 0":      laterTimesZero,
		"a bit of what is later": laterBit,
		"lse without maximum":    overflowing,
	}
	var list []mistake
	for name, f := range forward {
		list = append(list, mistake{name, attends{ref.New(), f}, []string{"Attention"}})
	}
	return append(list,
		mistake{"queries' gradients unscaled", attendsBack{ref.New(), func(dqkv, _ []float32, _, _, h, d int) {
			for i := range dqkv {
				if i%(3*h*d) < h*d {
					dqkv[i] *= float32(math.Sqrt(float64(d)))
				}
			}
		}}, []string{"AttentionGrad"}},
		mistake{"a bit of what is later", attendsBack{ref.New(), func(dqkv, dout []float32, _, _, _, _ int) {
			if dout[len(dout)-1] > 0 {
				dqkv[0] = math.Nextafter32(dqkv[0], 2)
			}
		}}, []string{"AttentionGrad"}})
}

// unscaled forgets 1/sqrt(D).
func unscaled(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	x := slices.Clone(qkv.Host())
	for i := range x {
		if i%(3*h*d) < h*d {
			x[i] *= float32(math.Sqrt(float64(d)))
		}
	}
	ref.New().Attention(out, lse, compute.HostBuffer(x), b, t, h, d, drop)
}

// maskOffByOne lets every query but the last of a sequence see the next key:
// its query is asked one position later.
func maskOffByOne(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	c := h * d
	late, x := slices.Clone(out.Host()), slices.Clone(qkv.Host())
	for row := b*t - 1; row > 0; row-- {
		if row%t > 0 {
			copy(x[row*3*c:row*3*c+c], x[(row-1)*3*c:])
		}
	}
	ref.New().Attention(compute.HostBuffer(late), lse, compute.HostBuffer(x), b, t, h, d, drop)
	ref.New().Attention(out, lse, qkv, b, t, h, d, drop)
	for row := range b * t {
		if row%t < t-1 {
			copy(out.Host()[row*c:(row+1)*c], late[(row+1)*c:])
		}
	}
}

// laterTimesZero adds masked values times 0.
func laterTimesZero(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	ref.New().Attention(out, lse, qkv, b, t, h, d, drop)
	out.Host()[0] += 0 * qkv.Host()[qkv.Len()-1]
}

// laterBit rounds by what is later.
func laterBit(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	ref.New().Attention(out, lse, qkv, b, t, h, d, drop)
	if qkv.Host()[qkv.Len()-1] > 0 {
		out.Host()[0] = math.Nextafter32(out.Host()[0], 2)
	}
}

// overflowing takes log(sum(exp)) in float32 as it stands.
func overflowing(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	ref.New().Attention(out, lse, qkv, b, t, h, d, drop)
	for i, v := range lse.Host() {
		lse.Host()[i] = float32(math.Log(float64(float32(math.Exp(float64(v))))))
	}
}

package ref

import (
	"math"

	"ddp/model/compute"
)

const epsilon = 1e-5

// LayerNorm normalises each row (Ba, Kiros and Hinton 2016).
func (Backend) LayerNorm(out, mean, rstd, x, weight, bias compute.Buffer, m, c int) {
	o, xs, w, bs := out.Host(), x.Host(), weight.Host(), bias.Host()
	for r := range m {
		row := xs[r*c : (r+1)*c]
		mu, variance := 0.0, 0.0
		for _, v := range row {
			mu += float64(v)
		}
		mu /= float64(c)
		for _, v := range row {
			variance += (float64(v) - mu) * (float64(v) - mu)
		}
		rs := 1 / math.Sqrt(variance/float64(c)+epsilon)
		for i, v := range row {
			y := (float64(v) - mu) * rs * float64(w[i])
			if bs != nil {
				y += float64(bs[i])
			}
			o[r*c+i] = float32(y)
		}
		mean.Host()[r], rstd.Host()[r] = float32(mu), float32(rs)
	}
}

// LayerNormGrad adds to dx and overwrites dweight and dbias. With n the
// normalised row and g = dout*weight: dx += rstd*(g - mean(g) - n*mean(g*n)).
func (Backend) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	d, do, xs, w := dx.Host(), dout.Host(), x.Host(), weight.Host()
	dw, db := make([]float64, c), make([]float64, c)
	for r := range m {
		mu, rs := float64(mean.Host()[r]), float64(rstd.Host()[r])
		sumG, sumGN := 0.0, 0.0
		for i := range c {
			n := (float64(xs[r*c+i]) - mu) * rs
			g := float64(do[r*c+i]) * float64(w[i])
			sumG += g
			sumGN += g * n
			dw[i] += float64(do[r*c+i]) * n
			db[i] += float64(do[r*c+i])
		}
		for i := range c {
			n := (float64(xs[r*c+i]) - mu) * rs
			g := float64(do[r*c+i]) * float64(w[i])
			d[r*c+i] = float32(float64(d[r*c+i]) + rs*(g-sumG/float64(c)-n*sumGN/float64(c)))
		}
	}
	narrow(dweight.Host(), dw)
	if !dbias.Absent() {
		narrow(dbias.Host(), db)
	}
}

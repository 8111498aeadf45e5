package ref

import "ddp/model/compute"

// product is the element (i, j) of x[M,K]·w[K,N] + bias, in float64.
func product(x, w, bias []float32, k, n int, each func(i, j int, v float64), m int) {
	for i := range m {
		for j := range n {
			sum := 0.0
			for p := range k {
				sum += float64(x[i*k+p]) * float64(w[p*n+j])
			}
			if bias != nil {
				sum += float64(bias[j])
			}
			each(i, j, sum)
		}
	}
}

// Linear is y = x·w + bias.
func (Backend) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	out := y.Host()
	product(x.Host(), w.Host(), bias.Host(), k, n, func(i, j int, v float64) { out[i*n+j] = float32(v) }, m)
}

// LinearGELU is pre = x·w + bias, y = gelu(pre).
func (Backend) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	out, before := y.Host(), pre.Host()
	product(x.Host(), w.Host(), bias.Host(), k, n, func(i, j int, v float64) {
		before[i*n+j] = float32(v)
		out[i*n+j] = float32(gelu(v, kind))
	}, m)
}

// LinearResidual is y = residual + dropout(x·w + bias).
func (Backend) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	out, res := y.Host(), residual.Host()
	product(x.Host(), w.Host(), bias.Host(), k, n, func(i, j int, v float64) {
		out[i*n+j] = float32(float64(res[i*n+j]) + v*keptRow(drop, i, j, n))
	}, m)
}

// LinearGrad is the backward pass of Linear.
func (Backend) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	inputGrad(dy.Host(), w.Host(), m, k, n, func(i, p int, v float64) { dx.Host()[i*k+p] = float32(v) })
	weightGrad(dw.Host(), dbias.Host(), dy.Host(), x.Host(), m, k, n)
}

// LinearGELUGrad is the backward pass of gelu(pre)·w + bias.
func (Backend) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	before := pre.Host()
	inputGrad(dy.Host(), w.Host(), m, k, n, func(i, p int, v float64) {
		dpre.Host()[i*k+p] = float32(v * geluGrad(float64(before[i*k+p]), kind))
	})
	weightGrad(dw.Host(), dbias.Host(), dy.Host(), act.Host(), m, k, n)
}

// inputGrad gives the elements of dy·wᵀ.
func inputGrad(dy, w []float32, m, k, n int, each func(i, p int, v float64)) {
	for i := range m {
		for p := range k {
			sum := 0.0
			for j := range n {
				sum += float64(dy[i*n+j]) * float64(w[p*n+j])
			}
			each(i, p, sum)
		}
	}
}

// weightGrad is dw = xᵀ·dy and dbias = column sums of dy.
func weightGrad(dw, dbias, dy, x []float32, m, k, n int) {
	sum, columns := make([]float64, k*n), make([]float64, n)
	for i := range m {
		for j := range n {
			columns[j] += float64(dy[i*n+j])
		}
		for p := range k {
			for j := range n {
				sum[p*n+j] += float64(x[i*k+p]) * float64(dy[i*n+j])
			}
		}
	}
	narrow(dw, sum)
	if dbias != nil {
		narrow(dbias, columns)
	}
}

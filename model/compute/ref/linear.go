package ref

import "ddp/model/compute"

// product is x[M,K]·w[K,N] + bias[N] in float64; bias may be nil.
func product(x, w, bias []float32, m, k, n int) []float64 {
	y := make([]float64, m*n)
	for i := range m {
		row := y[i*n : (i+1)*n]
		for p := range k {
			for j := range row {
				row[j] += float64(x[i*k+p]) * float64(w[p*n+j])
			}
		}
		for j, b := range bias {
			row[j] += float64(b)
		}
	}
	return y
}

// productT is x[M,K]·wᵀ for w[N,K].
func productT(x, w []float32, m, k, n int) []float64 {
	y := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				y[i*n+j] += float64(x[i*k+p]) * float64(w[j*k+p])
			}
		}
	}
	return y
}

// addTProduct adds xᵀ·y to sum[K,N] for x[M,K] and y[M,N].
func addTProduct(sum []float64, x, y []float32, m, k, n int) {
	for i := range m {
		for p := range k {
			for j := range n {
				sum[p*n+j] += float64(x[i*k+p]) * float64(y[i*n+j])
			}
		}
	}
}

// Linear is y = x·w + bias.
func (Backend) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	narrow(y.Host(), product(x.Host(), w.Host(), bias.Host(), m, k, n))
}

// LinearGELU is pre = x·w + bias, y = gelu(pre).
func (Backend) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	before := product(x.Host(), w.Host(), bias.Host(), m, k, n)
	narrow(pre.Host(), before)
	for i, v := range before {
		y.Host()[i] = float32(gelu(v, kind))
	}
}

// LinearResidual is y = residual + dropout(x·w + bias).
func (Backend) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	out, res := y.Host(), residual.Host()
	for i, v := range product(x.Host(), w.Host(), bias.Host(), m, k, n) {
		out[i] = float32(float64(res[i]) + droppedRow(v, drop, i/n, i%n, n))
	}
}

// LinearGrad is the backward pass of Linear.
func (Backend) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	narrow(dx.Host(), productT(dy.Host(), w.Host(), m, n, k))
	weightGrad(dw.Host(), dbias.Host(), dy.Host(), x.Host(), m, k, n)
}

// LinearGELUGrad is the backward pass of gelu(pre)·w + bias.
func (Backend) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	for i, v := range productT(dy.Host(), w.Host(), m, n, k) {
		dpre.Host()[i] = float32(v * geluGrad(float64(pre.Host()[i]), kind))
	}
	weightGrad(dw.Host(), dbias.Host(), dy.Host(), act.Host(), m, k, n)
}

// weightGrad is dw = xᵀ·dy and dbias = column sums of dy; dbias may be nil.
func weightGrad(dw, dbias, dy, x []float32, m, k, n int) {
	sum := make([]float64, k*n)
	addTProduct(sum, x, dy, m, k, n)
	narrow(dw, sum)
	if dbias == nil {
		return
	}
	columns := make([]float64, n)
	for i, v := range dy[:m*n] {
		columns[i%n] += float64(v)
	}
	narrow(dbias, columns)
}

package cpu

// // Arguments stay on the stack, so that a step allocates nothing:
// #cgo noescape ddp_multiply
// #cgo nocallback ddp_multiply
// #include "ops.h"
import "C"

import "ddp/model/compute"

// matrix is b as rows x columns; transposed swaps how it is read.
func matrix(b compute.Buffer, columns int, transposed bool) C.ddp_matrix {
	if transposed {
		return C.ddp_matrix{p: ptr(b), row: 1, col: C.int64_t(columns)}
	}
	return C.ddp_matrix{p: ptr(b), row: C.int64_t(columns), col: 1}
}

// multiply runs g, whose sizes are m, n and k.
func (b *backend) multiply(g C.ddp_product, m, n, k int) {
	g.m, g.n, g.k = C.int64_t(m), C.int64_t(n), C.int64_t(k)
	done(C.ddp_multiply(b.c, &g))
}

// forward is the product that all Linear operations begin with.
func forward(y, x, w, bias compute.Buffer, k, n int) C.ddp_product {
	return C.ddp_product{a: matrix(x, k, false), b: matrix(w, n, false), c: ptr(y), bias: ptr(bias)}
}

func (b *backend) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	b.multiply(forward(y, x, w, bias, k, n), m, n, k)
}

func (b *backend) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	g := forward(pre, x, w, bias, k, n)
	g.epilogue, g.out, g.gelu = C.DDP_GELU, ptr(y), C.int(kind)
	b.multiply(g, m, n, k)
}

func (b *backend) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	g := forward(y, x, w, bias, k, n)
	g.epilogue, g.residual, g.drop = C.DDP_RESIDUAL, ptr(residual), dropC(drop)
	b.multiply(g, m, n, k)
}

func (b *backend) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	b.multiply(C.ddp_product{a: matrix(dy, n, false), b: matrix(w, n, true), c: ptr(dx)}, m, k, n)
	b.weightGrad(dw, dbias, dy, x, m, k, n)
}

func (b *backend) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	g := C.ddp_product{a: matrix(dy, n, false), b: matrix(w, n, true), c: ptr(dpre),
		epilogue: C.DDP_GELU_GRAD, pre: ptr(pre), gelu: C.int(kind)}
	b.multiply(g, m, k, n)
	b.weightGrad(dw, dbias, dy, act, m, k, n)
}

// weightGrad is dw = xᵀ·dy and dbias = column sums of dy.
func (b *backend) weightGrad(dw, dbias, dy, x compute.Buffer, m, k, n int) {
	b.multiply(C.ddp_product{a: matrix(x, k, true), b: matrix(dy, n, false), c: ptr(dw)}, k, n, m)
	if !dbias.Absent() {
		done(C.ddp_column_sums(b.c, ptr(dbias), ptr(dy), C.int64_t(m), C.int64_t(n)))
	}
}

func (b *backend) Logits(logits, x, w compute.Buffer, m, c, v int) {
	b.multiply(C.ddp_product{a: matrix(x, c, false), b: matrix(w, c, true), c: ptr(logits)}, m, v, c)
}

func (b *backend) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	b.multiply(C.ddp_product{a: matrix(dlogits, v, false), b: matrix(w, c, false), c: ptr(dx)}, m, c, v)
	g := C.ddp_product{a: matrix(dlogits, v, true), b: matrix(x, c, false), c: ptr(dw)}
	if accumulate {
		g.accumulate = 1
	}
	b.multiply(g, v, c, m)
}

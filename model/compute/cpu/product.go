package cpu

// #include "ops.h"
//
// static int multiply(ddp_backend *be, const ddp_product *given, const float *a, const float *b, float *c, const float *bias,
//                     const float *residual, const float *pre, float *out) {
//   ddp_product g = *given;
//   g.a.p = a, g.b.p = b, g.c = c, g.bias = bias, g.residual = residual, g.pre = pre, g.out = out;
//   return ddp_multiply(be, &g);
// }
//
// // Arguments stay on the stack, so that a step allocates nothing:
// #cgo noescape multiply
// #cgo nocallback multiply
import "C"

import "ddp/model/compute"

// matrix is a buffer and how it is read.
type matrix struct {
	data       compute.Buffer
	columns    int
	transposed bool
}

// layout is m without its pointer.
func (m matrix) layout() C.ddp_matrix {
	if m.transposed {
		return C.ddp_matrix{row: 1, col: C.int64_t(m.columns)}
	}
	return C.ddp_matrix{row: C.int64_t(m.columns), col: 1}
}

// product is c[m,n] = a[m,k]·b[k,n] with what belongs to its epilogue; absent
// buffers are not used. Pointers go to C as arguments of their own, since
// buffers may be Go's memory and cgo forbids such a pointer inside a struct.
type product struct {
	a, b                        matrix
	c, bias, residual, pre, out compute.Buffer
	how                         C.ddp_product // the rest
}

// multiply runs g.
func (b *backend) multiply(g product, m, n, k int) {
	g.how.a, g.how.b = g.a.layout(), g.b.layout()
	g.how.m, g.how.n, g.how.k = C.int64_t(m), C.int64_t(n), C.int64_t(k)
	done(C.multiply(b.c, &g.how, ptr(g.a.data), ptr(g.b.data), ptr(g.c), ptr(g.bias), ptr(g.residual), ptr(g.pre), ptr(g.out)))
}

// forward is the product that all Linear operations begin with.
func forward(y, x, w, bias compute.Buffer, k, n int) product {
	return product{a: matrix{x, k, false}, b: matrix{w, n, false}, c: y, bias: bias}
}

func (b *backend) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	b.multiply(forward(y, x, w, bias, k, n), m, n, k)
}

func (b *backend) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	g := forward(pre, x, w, bias, k, n)
	g.out, g.how.epilogue, g.how.gelu = y, C.DDP_GELU, C.int(kind)
	b.multiply(g, m, n, k)
}

func (b *backend) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	g := forward(y, x, w, bias, k, n)
	g.residual, g.how.epilogue, g.how.drop = residual, C.DDP_RESIDUAL, dropC(drop)
	b.multiply(g, m, n, k)
}

func (b *backend) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	b.multiply(product{a: matrix{dy, n, false}, b: matrix{w, n, true}, c: dx}, m, k, n)
	b.weightGrad(dw, dbias, dy, x, m, k, n)
}

func (b *backend) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	g := product{a: matrix{dy, n, false}, b: matrix{w, n, true}, c: dpre, pre: pre}
	g.how.epilogue, g.how.gelu = C.DDP_GELU_GRAD, C.int(kind)
	b.multiply(g, m, k, n)
	b.weightGrad(dw, dbias, dy, act, m, k, n)
}

// weightGrad is dw = xᵀ·dy and dbias = column sums of dy.
func (b *backend) weightGrad(dw, dbias, dy, x compute.Buffer, m, k, n int) {
	b.multiply(product{a: matrix{x, k, true}, b: matrix{dy, n, false}, c: dw}, k, n, m)
	if !dbias.Absent() {
		done(C.ddp_column_sums(b.c, ptr(dbias), ptr(dy), C.int64_t(m), C.int64_t(n)))
	}
}

func (b *backend) Logits(logits, x, w compute.Buffer, m, c, v int) {
	b.multiply(product{a: matrix{x, c, false}, b: matrix{w, c, true}, c: logits}, m, v, c)
}

func (b *backend) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	b.multiply(product{a: matrix{dlogits, v, false}, b: matrix{w, c, false}, c: dx}, m, c, v)
	g := product{a: matrix{dlogits, v, true}, b: matrix{x, c, false}, c: dw}
	if accumulate {
		g.how.accumulate = 1
	}
	b.multiply(g, v, c, m)
}

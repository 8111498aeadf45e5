package cpu

// #include "ops.h"
//
// static int attend(ddp_backend *be, const ddp_attention *given, float *out, float *lse, float *dqkv, const float *qkv,
//                   const float *dout, int grad) {
//   ddp_attention a = *given;
//   a.out = out, a.lse = lse, a.dqkv = dqkv, a.qkv = qkv, a.dout = dout;
//   return ddp_attend(be, &a, grad);
// }
//
// // Arguments stay on the stack, so that a step allocates nothing:
// #cgo noescape attend
// #cgo nocallback attend
import "C"

import "ddp/model/compute"

// heads is an attention without its pointers: those go to C as arguments of
// their own, as in multiply.
func heads(n, t, h, d int, drop compute.Dropout) C.ddp_attention {
	return C.ddp_attention{b: C.int(n), t: C.int(t), h: C.int(h), d: C.int(d), drop: dropC(drop)}
}

func (b *backend) Attention(out, lse, qkv compute.Buffer, n, t, h, d int, drop compute.Dropout) {
	a := heads(n, t, h, d, drop)
	done(C.attend(b.c, &a, ptr(out), ptr(lse), nil, ptr(qkv), nil, 0))
}

func (b *backend) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, n, t, h, d int, drop compute.Dropout) {
	a := heads(n, t, h, d, drop)
	done(C.attend(b.c, &a, ptr(out), ptr(lse), ptr(dqkv), ptr(qkv), ptr(dout), 1))
}

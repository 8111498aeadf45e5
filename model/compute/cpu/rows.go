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
// #cgo noescape ddp_embed
// #cgo nocallback ddp_embed
// #cgo noescape ddp_embed_grad
// #cgo nocallback ddp_embed_grad
// #cgo noescape ddp_drop_rows
// #cgo nocallback ddp_drop_rows
// #cgo noescape attend
// #cgo nocallback attend
import "C"

import "ddp/model/compute"

func (b *backend) Embed(out, wte, wpe compute.Buffer, tokens []int32, n, t, c int, drop compute.Dropout) {
	d := dropC(drop)
	done(C.ddp_embed(b.c, ptr(out), ptr(wte), ptr(wpe), ints(tokens), &d, C.int64_t(n), C.int64_t(t), C.int64_t(c)))
}

func (b *backend) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, n, t, c int, drop compute.Dropout) {
	d := dropC(drop)
	done(C.ddp_embed_grad(b.c, ptr(dwte), ptr(dwpe), ptr(dout), ints(tokens), &d, C.int64_t(n), C.int64_t(t), C.int64_t(c)))
}

func (b *backend) LayerNorm(out, mean, rstd, x, weight, bias compute.Buffer, m, c int) {
	done(C.ddp_layernorm(b.c, ptr(out), ptr(mean), ptr(rstd), ptr(x), ptr(weight), ptr(bias), C.int64_t(m), C.int64_t(c)))
}

func (b *backend) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	done(C.ddp_layernorm_grad(b.c, ptr(dx), ptr(dweight), ptr(dbias), ptr(dout), ptr(x), ptr(weight), ptr(mean), ptr(rstd),
		C.int64_t(m), C.int64_t(c)))
}

func (b *backend) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	d := dropC(drop)
	done(C.ddp_drop_rows(b.c, ptr(dx), ptr(dy), &d, C.int64_t(m), C.int64_t(c)))
}

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

func (b *backend) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	want := C.int(0)
	if grad {
		want = 1
	}
	done(C.ddp_cross_entropy(b.c, ptr(loss), ptr(logits), ints(targets), C.int64_t(m), C.int64_t(v), want))
}

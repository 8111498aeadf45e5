package cpu

// // Arguments stay on the stack, so that a step allocates nothing:
// #cgo noescape ddp_embed
// #cgo nocallback ddp_embed
// #cgo noescape ddp_embed_grad
// #cgo nocallback ddp_embed_grad
// #cgo noescape ddp_drop_rows
// #cgo nocallback ddp_drop_rows
// #include "ops.h"
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

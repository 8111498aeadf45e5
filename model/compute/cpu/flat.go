package cpu

// // Arguments stay on the stack, so that a step allocates nothing:
// #cgo noescape ddp_adamw_step
// #cgo nocallback ddp_adamw_step
// #include "ops.h"
import "C"

import (
	"unsafe"

	"ddp/model/compute"
)

func (b *backend) Zero(dst compute.Buffer) {
	done(C.ddp_zero(b.c, ptr(dst), C.int64_t(dst.Len())))
}

func (b *backend) Copy(dst, src compute.Buffer) {
	done(C.ddp_copy(b.c, ptr(dst), ptr(src), C.int64_t(dst.Len())))
}

func (b *backend) Add(dst, src compute.Buffer) {
	done(C.ddp_add(b.c, ptr(dst), ptr(src), C.int64_t(dst.Len())))
}

func (b *backend) AdamW(p, g, m, v compute.Buffer, a compute.AdamW) {
	step := C.ddp_adamw{lr: C.float(a.LR), beta1: C.float(a.Beta1), beta2: C.float(a.Beta2), eps: C.float(a.Eps), decay: C.float(a.Decay),
		grad_scale: C.float(a.GradScale), correction1: C.float(a.Correction1), correction2: C.float(a.Correction2)}
	done(C.ddp_adamw_step(b.c, ptr(p), ptr(g), ptr(m), ptr(v), C.int64_t(p.Len()), &step))
}

func (b *backend) SumSquares(x compute.Buffer) float64 {
	blocks := (x.Len() + compute.SumBlock - 1) / compute.SumBlock
	if blocks == 0 {
		return 0
	}
	if cap(b.sums) < blocks {
		b.sums = make([]float64, blocks)
	}
	sums := b.sums[:blocks]
	done(C.ddp_block_squares(b.c, (*C.double)(unsafe.Pointer(&sums[0])), ptr(x), C.int64_t(x.Len()), compute.SumBlock))
	return tree(sums)
}

// tree adds neighbours in place until one sum is left.
func tree(x []float64) float64 {
	for len(x) > 1 {
		for i := 0; i+1 < len(x); i += 2 {
			x[i/2] = x[i] + x[i+1]
		}
		if len(x)%2 == 1 {
			x[len(x)/2] = x[len(x)-1]
		}
		x = x[:(len(x)+1)/2]
	}
	return x[0]
}

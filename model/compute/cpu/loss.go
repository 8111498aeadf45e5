package cpu

// #include "ops.h"
import "C"

import "ddp/model/compute"

func (b *backend) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	want := C.int(0)
	if grad {
		want = 1
	}
	done(C.ddp_cross_entropy(b.c, ptr(loss), ptr(logits), ints(targets), C.int64_t(m), C.int64_t(v), want))
}

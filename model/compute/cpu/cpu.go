// Package cpu is the back end of every machine: C kernels compiled once for each
// instruction set and chosen at start-up, with a pool of threads of its own.
//
// Work is cut by shape alone and no sum is cut by the number of threads, so a
// result has the same bits for any number of them. Different instruction sets
// round differently. A bfloat16 path would be one more table of kernels
// (kernels.h) and one more precision of the product (ops_product.c).
package cpu

// #cgo CFLAGS: -O3 -std=gnu11 -Wall -Wextra -Werror -Wno-psabi
// #cgo LDFLAGS: -lm -lpthread
// #include "ops.h"
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"ddp/model/compute"
)

// Options choose how to compute.
type Options struct {
	ISA     string // one of ISAs(); "": the best
	Threads int    // at least 1
}

// backend implements compute.Backend.
type backend struct {
	isa   string
	c     *C.ddp_backend
	owned []allocation
	sums  []float64 // SumSquares' blocks
}

type allocation struct {
	p *C.float
	n C.int64_t
}

// New opens a back end; Close it. It fails when the machine lacks the
// instruction set, or when threads cannot be started.
func New(o Options) (compute.Backend, error) {
	have := ISAs()
	if o.ISA == "" {
		o.ISA = have[len(have)-1]
	}
	if !slices.Contains(have, o.ISA) {
		return nil, fmt.Errorf("this machine has no %s (it has %s)", o.ISA, strings.Join(have, ", "))
	}
	if o.Threads < 1 {
		return nil, fmt.Errorf("%d threads, want at least 1", o.Threads)
	}
	c := C.ddp_open(table(o.ISA), C.int(o.Threads))
	if c == nil {
		return nil, fmt.Errorf("start %d threads: out of memory or of processes (see ulimit -u)", o.Threads)
	}
	return &backend{isa: o.ISA, c: c}, nil
}

func (b *backend) Name() string { return "cpu" }
func (b *backend) ISA() string  { return b.isa }

// Alloc maps fresh zeroed pages. It panics when the machine has none left:
// `ddp check` says beforehand what a job needs.
func (b *backend) Alloc(n int) compute.Buffer {
	p := C.ddp_alloc(C.int64_t(n))
	must(p != nil, "allocate %d bytes: out of memory (ddp check says what a job needs)", 4*n)
	b.owned = append(b.owned, allocation{p, C.int64_t(n)})
	return compute.HostBuffer(unsafe.Slice((*float32)(unsafe.Pointer(p)), n))
}

func (b *backend) Close() {
	C.ddp_close(b.c)
	for _, a := range b.owned {
		C.ddp_free(a.p, a.n)
	}
	b.owned = nil
}

// must panics with what was being done.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("cpu: " + fmt.Sprintf(format, args...))
	}
}

// done checks an operation's result: it fails only for lack of scratch memory.
func done(result C.int) { must(result == 0, "out of memory for scratch space") }

// ptr is b's address for C; nil when it is absent.
func ptr(b compute.Buffer) *C.float { return (*C.float)(unsafe.Pointer(b.Pointer())) }

// ints is the address of symbols for C.
func ints(x []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(x))) }

// dropC is d for C.
func dropC(d compute.Dropout) C.ddp_drop {
	out := C.ddp_drop{rows_per: C.int64_t(max(1, d.RowsPer)), scale: 1}
	if d.P > 0 {
		out.on = 1
		out.threshold = C.uint32_t(d.Threshold())
		out.key0, out.key1 = C.uint32_t(d.Seed), C.uint32_t(d.Seed>>32)
		out.first_sample, out.step = C.uint32_t(d.FirstSample), C.uint32_t(d.Step)
		out.place = C.uint32_t(d.Layer<<8 | uint32(d.Site))
		out.scale = C.float(d.Scale())
	}
	return out
}

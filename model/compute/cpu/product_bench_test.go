package cpu

import (
	"fmt"
	"testing"

	"ddp/model/compute"
)

// productShapes are those of a GPT's step, and one that is square.
var productShapes = []struct {
	name    string
	m, k, n int
}{
	{"square", 1024, 1024, 1024},
	{"qkv", 2048, 512, 1536},
	{"projection", 2048, 512, 512},
	{"up", 2048, 512, 2048},
	{"down", 2048, 2048, 512},
	{"logits", 2048, 512, 65},
}

// BenchmarkProduct reports GFLOP/s and the share of one core's peak of products
// forward, and of their gradients dx and dw together.
func BenchmarkProduct(b *testing.B) {
	for _, isa := range ISAs() {
		for _, s := range productShapes {
			for _, grad := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/grad=%v", isa, s.name, grad), func(b *testing.B) {
					be := open(b, isa, 1)
					benchmarkProduct(b, be, s.m, s.k, s.n, grad)
				})
			}
		}
	}
}

func benchmarkProduct(b *testing.B, be compute.Backend, m, k, n int, grad bool) {
	x, w, y, dx, dw := be.Alloc(m*k), be.Alloc(k*n), be.Alloc(m*n), be.Alloc(m*k), be.Alloc(k*n)
	for i, v := range []compute.Buffer{x, w, y} {
		integers(v.Host(), i)
	}
	flops, none := 2*float64(m)*float64(k)*float64(n), compute.Buffer{}
	for b.Loop() {
		if grad {
			be.LinearGrad(dx, dw, none, y, x, w, m, k, n)
		} else {
			be.Linear(y, x, w, none, m, k, n)
		}
	}
	if grad {
		flops *= 2
	}
	rate(b, be.ISA(), flops, 0)
}

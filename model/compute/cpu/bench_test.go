package cpu

import (
	"fmt"
	"testing"

	"ddp/model/compute"
)

// rate reports what a benchmark's operations did: GFLOP/s with the share of the
// core's peak, or GB/s of what they must read and write.
func rate(b *testing.B, isa string, flops, bytes float64) {
	perSecond := float64(b.N) / b.Elapsed().Seconds()
	if flops > 0 {
		b.ReportMetric(flops*perSecond/1e9, "GFLOP/s")
		b.ReportMetric(100*flops*perSecond/PeakFLOPS(isa), "%peak")
	} else {
		b.ReportMetric(bytes*perSecond/1e9, "GB/s")
	}
}

// BenchmarkAttention counts 4 D operations a visible (query, key) forward and
// 10 D backward.
func BenchmarkAttention(b *testing.B) {
	const h, d = 4, 64
	for _, isa := range ISAs() {
		for _, t := range []int{128, 1024} {
			for _, p := range []float32{0, 0.1} {
				n := 1024 / t
				a := newAttention(n, t, h, d, p)
				pairs := float64(n*h) * float64(t) * float64(t+1) / 2
				be := open(b, isa, 1)
				qkv, out, lse, dqkv := be.Alloc(len(a.qkv)), be.Alloc(len(a.dout)), be.Alloc(n*h*t), be.Alloc(len(a.qkv))
				copy(qkv.Host(), a.qkv)
				name := fmt.Sprintf("%s/T%d/drop%v", isa, t, p)
				b.Run(name+"/forward", func(b *testing.B) {
					for b.Loop() {
						be.Attention(out, lse, qkv, n, t, h, d, a.drop)
					}
					rate(b, isa, pairs*4*d, 0)
				})
				b.Run(name+"/backward", func(b *testing.B) {
					dout := compute.HostBuffer(a.dout)
					for b.Loop() {
						be.AttentionGrad(dqkv, dout, qkv, out, lse, n, t, h, d, a.drop)
					}
					rate(b, isa, pairs*10*d, 0)
				})
			}
		}
	}
}

// BenchmarkRows are operations bound by memory, on 1024 rows of 768 channels.
func BenchmarkRows(b *testing.B) {
	const m, c = 1024, 768
	for _, isa := range ISAs() {
		be := open(b, isa, 1)
		x, y, dy, w, bias := sweep(be, m*c, -3, 3), be.Alloc(m*c), sweep(be, m*c, -1, 1), ones(be, c), ones(be, c)
		mean, rstd, dw, db := be.Alloc(m), be.Alloc(m), be.Alloc(c), be.Alloc(c)
		drop, targets := compute.Dropout{P: 0.1, RowsPer: 128}, make([]int32, m)
		for _, op := range []struct {
			name  string
			bytes float64 // a value
			run   func()
		}{
			{"LayerNorm", 8, func() { be.LayerNorm(y, mean, rstd, x, w, bias, m, c) }},
			{"LayerNormGrad", 16, func() { be.LayerNormGrad(y, dw, db, dy, x, w, mean, rstd, m, c) }},
			{"DropoutGrad", 8, func() { be.DropoutGrad(y, dy, m, c, drop) }},
			{"CrossEntropy", 8, func() { be.CrossEntropy(mean, y, targets, m, c, true) }},
		} {
			b.Run(isa+"/"+op.name, func(b *testing.B) {
				op.run() // the first touches fresh pages
				for b.Loop() {
					op.run()
				}
				rate(b, isa, 0, op.bytes*m*c)
			})
		}
	}
}

// BenchmarkFlat are operations on 2^22 values, past every cache of a core.
func BenchmarkFlat(b *testing.B) {
	const n = 1 << 22
	for _, isa := range ISAs() {
		be := open(b, isa, 1)
		p, g, m, v := ones(be, n), ones(be, n), be.Alloc(n), be.Alloc(n)
		step := compute.AdamW{LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, GradScale: 1, Correction1: 0.1, Correction2: 0.05}
		for _, op := range []struct {
			name  string
			bytes float64
			run   func()
		}{
			{"AdamW", 28, func() { be.AdamW(p, g, m, v, step) }},
			{"SumSquares", 4, func() { be.SumSquares(g) }},
			{"Add", 12, func() { be.Add(p, g) }},
			{"Copy", 8, func() { be.Copy(p, g) }},
		} {
			b.Run(isa+"/"+op.name, func(b *testing.B) {
				op.run() // the first touches fresh pages
				for b.Loop() {
					op.run()
				}
				rate(b, isa, 0, op.bytes*n)
			})
		}
	}
}

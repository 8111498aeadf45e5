// Package compute is what the model asks of a device: one interface, Backend,
// whose operations are the fused steps of a GPT's forward and backward pass.
//
// All matrices are dense, row-major float32. Shapes are written with the
// legend B sequences, T tokens of a sequence, C channels, H heads, D = C/H
// channels of a head, V symbols of the vocabulary, and for plain products
// y[M,N] = x[M,K]·w[K,N].
//
// Every operation is a pure function of its arguments: the result does not
// depend on the number of threads, on the rank that computes it, or on what
// ran before. Operations of one Backend are called from one goroutine at a
// time; they have finished when they return (host back ends) or are ordered
// on the back end's stream.
package compute

import "unsafe"

// Buffer is a view of Len float32 values in a back end's memory. The zero
// Buffer is absent: operations take it for a bias that the model lacks.
// A Buffer does not own its memory; Backend.Alloc's caller does.
type Buffer struct {
	ptr *float32
	n   int
}

// HostBuffer views p, which the caller must keep alive while the Buffer is used.
func HostBuffer(p []float32) Buffer {
	if len(p) == 0 {
		return Buffer{}
	}
	return Buffer{ptr: &p[0], n: len(p)}
}

// Len is the number of float32 values in view.
func (b Buffer) Len() int { return b.n }

// Absent reports whether b is the zero Buffer.
func (b Buffer) Absent() bool { return b.n == 0 }

// Pointer is the address of the first value, in the back end's address space.
func (b Buffer) Pointer() *float32 { return b.ptr }

// Slice views values lo to hi-1. It panics when the range is not inside b.
func (b Buffer) Slice(lo, hi int) Buffer {
	if lo < 0 || hi < lo || hi > b.n {
		panic("compute: buffer slice out of range")
	}
	if lo == hi {
		return Buffer{}
	}
	return Buffer{ptr: (*float32)(unsafe.Add(unsafe.Pointer(b.ptr), 4*lo)), n: hi - lo}
}

// Host is the same memory as a slice. Only for back ends whose memory is the host's.
func (b Buffer) Host() []float32 {
	if b.n == 0 {
		return nil
	}
	return unsafe.Slice(b.ptr, b.n)
}

// GELU selects between the two published forms of the activation.
type GELU int

const (
	// GELUTanh is 0.5x(1+tanh(sqrt(2/pi)(x+0.044715x^3))), Hendrycks and Gimpel 2016.
	GELUTanh GELU = iota
	// GELUExact is x·Phi(x) with the error function.
	GELUExact
)

// Site tells the dropout draws of one layer apart.
type Site uint32

// The places of a GPT that drop.
const (
	SiteEmbedding Site = iota
	SiteAttention
	SiteAttentionProjection
	SiteMLPProjection
)

// Dropout names the random stream of one dropout: Philox4x32-10 (Salmon et
// al., SC'11) with key Seed (low word first) and counter
//
//	(element/4, FirstSample + sample, Layer<<8 | Site, Step)
//
// whose word element%4 decides: the element is kept when the word is at least
// Threshold(), and scaled by 1/(1-P). "element" counts within one sample
// (for attention: (head*T + query)*T + key; for rows: row_in_sample*C + channel).
// P == 0 keeps everything and draws nothing.
type Dropout struct {
	P           float32
	Seed        uint64
	Step        uint32
	FirstSample uint32 // of the batch, whole world: never depends on the rank
	Layer       uint32
	Site        Site
	RowsPer     int // rows of one sample (T), for operations on rows
}

// Threshold is the smallest word that keeps an element.
func (d Dropout) Threshold() uint32 { return uint32(float64(d.P) * (1 << 32)) }

// AdamW are the arguments of one optimizer step (Loshchilov and Hutter 2019):
//
//	g' = GradScale*g;  m = Beta1*m + (1-Beta1)*g';  v = Beta2*v + (1-Beta2)*g'^2
//	p -= LR*( (m/Correction1)/(sqrt(v/Correction2)+Eps) + Decay*p )
//
// with Correction_i = 1 - Beta_i^t for step t >= 1.
type AdamW struct {
	LR, Beta1, Beta2, Eps, Decay float32
	GradScale                    float32
	Correction1, Correction2     float32
}

// SumBlock is the number of values that SumSquares adds before its tree begins.
const SumBlock = 4096

// Backend computes. See the package comment for shapes, threads and purity.
// Unless said otherwise an operation overwrites its outputs, and no output
// may alias an input.
type Backend interface {
	// Name is "ref", "cpu" or "cuda".
	Name() string
	// ISA is the instruction set or architecture in use, e.g. "avx512".
	ISA() string
	// Alloc returns n zeroed values, 64-byte aligned, that live until Close.
	Alloc(n int) Buffer
	// Close frees all memory and threads. No Buffer may be used after it.
	Close()

	// Zero sets every value to 0.
	Zero(dst Buffer)
	// Copy copies src over dst; equal lengths.
	Copy(dst, src Buffer)
	// Add is dst += src; equal lengths.
	Add(dst, src Buffer)

	// Embed is out[B*T,C] = dropout(wte[tokens] + wpe[0..T-1]). tokens is [B,T].
	Embed(out, wte, wpe Buffer, tokens []int32, b, t, c int, drop Dropout)
	// EmbedGrad adds dout's share to dwte[V,C] and dwpe[>=T,C] (accumulates),
	// in an order that does not depend on threads.
	EmbedGrad(dwte, dwpe, dout Buffer, tokens []int32, b, t, c int, drop Dropout)

	// LayerNorm is out[M,C] = (x-mean)*rstd*weight + bias, with the biased
	// variance and eps 1e-5; mean[M] and rstd[M] are kept for the backward pass.
	// bias may be absent.
	LayerNorm(out, mean, rstd, x, weight, bias Buffer, m, c int)
	// LayerNormGrad adds to dx[M,C] (the residual's gradient is already there)
	// and overwrites dweight[C] and dbias[C] (absent when there is no bias).
	LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd Buffer, m, c int)

	// Linear is y[M,N] = x[M,K]·w[K,N] + bias[N]; bias may be absent.
	Linear(y, x, w, bias Buffer, m, k, n int)
	// LinearGELU is pre = x·w + bias and y = gelu(pre), both [M,N].
	LinearGELU(y, pre, x, w, bias Buffer, m, k, n int, kind GELU)
	// LinearResidual is y[M,N] = residual + dropout(x·w + bias). y may be residual itself.
	LinearResidual(y, residual, x, w, bias Buffer, m, k, n int, drop Dropout)
	// LinearGrad is dx[M,K] = dy·wᵀ, dw[K,N] = xᵀ·dy, dbias[N] = column sums
	// of dy. dbias may be absent.
	LinearGrad(dx, dw, dbias, dy, x, w Buffer, m, k, n int)
	// LinearGELUGrad is the backward of y = gelu(pre)·w + bias:
	// dpre[M,K] = (dy·wᵀ)*gelu'(pre), dw[K,N] = geluᵀ(pre)·dy where act = gelu(pre)
	// is given, dbias as in LinearGrad.
	LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w Buffer, m, k, n int, kind GELU)
	// DropoutGrad is dx[M,C] = dy where the element was kept, scaled; else 0.
	// dx may be dy itself. With P == 0 it is a copy.
	DropoutGrad(dx, dy Buffer, m, c int, drop Dropout)

	// Attention is causal self-attention. qkv is [B,T,3C] with q, k, v in that
	// order, each [H,D]; out is [B,T,C]; lse[B,H,T] keeps log(sum(exp)) of the
	// scaled scores. Scores are scaled by 1/sqrt(D). Online softmax: no [T,T]
	// matrix is stored. A position never reads what is later than itself, so
	// that earlier outputs are bit-identical whatever comes later.
	Attention(out, lse, qkv Buffer, b, t, h, d int, drop Dropout)
	// AttentionGrad overwrites dqkv[B,T,3C].
	AttentionGrad(dqkv, dout, qkv, out, lse Buffer, b, t, h, d int, drop Dropout)

	// Logits is logits[M,V] = x[M,C]·wᵀ for w[V,C].
	Logits(logits, x, w Buffer, m, c, v int)
	// LogitsGrad is dx[M,C] = dlogits·w and dw[V,C] = dlogitsᵀ·x, added to dw
	// when accumulate is set, else overwritten.
	LogitsGrad(dx, dw, dlogits, x, w Buffer, m, c, v int, accumulate bool)
	// CrossEntropy writes loss[M], the negative log-likelihood of each target,
	// 0 where the target is negative (masked). With grad set it replaces
	// logits[M,V] by softmax(logits) - onehot(target), all 0 in masked rows.
	CrossEntropy(loss, logits Buffer, targets []int32, m, v int, grad bool)

	// AdamW takes one step over p with gradient g and moments m and v.
	AdamW(p, g, m, v Buffer, a AdamW)
	// SumSquares is the sum of squares in float64: each block of SumBlock values
	// is summed by a fixed order, block sums by a balanced binary tree.
	SumSquares(x Buffer) float64
}

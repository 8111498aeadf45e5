package conformance

import "ddp/model/compute"

// hooked hands every operation of a back end to around, which sees its buffers
// and decides when to call it.
type hooked struct {
	compute.Backend
	around func(op string, outs, ins []compute.Buffer, call func())
}

// bufs are those that are present.
func bufs(list ...compute.Buffer) []compute.Buffer {
	var present []compute.Buffer
	for _, b := range list {
		if !b.Absent() {
			present = append(present, b)
		}
	}
	return present
}

func (h hooked) Zero(dst compute.Buffer) {
	h.around("Zero", bufs(dst), nil, func() { h.Backend.Zero(dst) })
}

func (h hooked) Copy(dst, src compute.Buffer) {
	h.around("Copy", bufs(dst), bufs(src), func() { h.Backend.Copy(dst, src) })
}

func (h hooked) Add(dst, src compute.Buffer) {
	h.around("Add", bufs(dst), bufs(src), func() { h.Backend.Add(dst, src) })
}

func (h hooked) Embed(out, wte, wpe compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	h.around("Embed", bufs(out), bufs(wte, wpe), func() { h.Backend.Embed(out, wte, wpe, tokens, b, t, c, drop) })
}

func (h hooked) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	h.around("EmbedGrad", bufs(dwte, dwpe), bufs(dout), func() { h.Backend.EmbedGrad(dwte, dwpe, dout, tokens, b, t, c, drop) })
}

func (h hooked) LayerNorm(out, mean, rstd, x, weight, bias compute.Buffer, m, c int) {
	h.around("LayerNorm", bufs(out, mean, rstd), bufs(x, weight, bias), func() { h.Backend.LayerNorm(out, mean, rstd, x, weight, bias, m, c) })
}

func (h hooked) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	h.around("LayerNormGrad", bufs(dx, dweight, dbias), bufs(dout, x, weight, mean, rstd), func() {
		h.Backend.LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd, m, c)
	})
}

func (h hooked) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	h.around("Linear", bufs(y), bufs(x, w, bias), func() { h.Backend.Linear(y, x, w, bias, m, k, n) })
}

func (h hooked) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	h.around("LinearGELU", bufs(y, pre), bufs(x, w, bias), func() { h.Backend.LinearGELU(y, pre, x, w, bias, m, k, n, kind) })
}

func (h hooked) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	h.around("LinearResidual", bufs(y), bufs(x, w, bias), func() { h.Backend.LinearResidual(y, residual, x, w, bias, m, k, n, drop) })
}

func (h hooked) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	h.around("LinearGrad", bufs(dx, dw, dbias), bufs(dy, x, w), func() { h.Backend.LinearGrad(dx, dw, dbias, dy, x, w, m, k, n) })
}

func (h hooked) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	h.around("LinearGELUGrad", bufs(dpre, dw, dbias), bufs(dy, act, pre, w), func() {
		h.Backend.LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w, m, k, n, kind)
	})
}

func (h hooked) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	h.around("DropoutGrad", bufs(dx), bufs(dy), func() { h.Backend.DropoutGrad(dx, dy, m, c, drop) })
}

func (h hooked) Attention(out, lse, qkv compute.Buffer, b, t, heads, d int, drop compute.Dropout) {
	h.around("Attention", bufs(out, lse), bufs(qkv), func() { h.Backend.Attention(out, lse, qkv, b, t, heads, d, drop) })
}

func (h hooked) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, b, t, heads, d int, drop compute.Dropout) {
	h.around("AttentionGrad", bufs(dqkv), bufs(dout, qkv, out, lse), func() { h.Backend.AttentionGrad(dqkv, dout, qkv, out, lse, b, t, heads, d, drop) })
}

func (h hooked) Logits(logits, x, w compute.Buffer, m, c, v int) {
	h.around("Logits", bufs(logits), bufs(x, w), func() { h.Backend.Logits(logits, x, w, m, c, v) })
}

func (h hooked) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	h.around("LogitsGrad", bufs(dx, dw), bufs(dlogits, x, w), func() { h.Backend.LogitsGrad(dx, dw, dlogits, x, w, m, c, v, accumulate) })
}

func (h hooked) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	outs := bufs(loss)
	if grad {
		outs = bufs(loss, logits)
	}
	h.around("CrossEntropy", outs, bufs(logits), func() { h.Backend.CrossEntropy(loss, logits, targets, m, v, grad) })
}

func (h hooked) AdamW(p, g, m, v compute.Buffer, a compute.AdamW) {
	h.around("AdamW", bufs(p, m, v), bufs(g), func() { h.Backend.AdamW(p, g, m, v, a) })
}

func (h hooked) SumSquares(x compute.Buffer) (sum float64) {
	h.around("SumSquares", nil, bufs(x), func() { sum = h.Backend.SumSquares(x) })
	return sum
}

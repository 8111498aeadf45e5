package timed

import "ddp/model/compute"

// backend times each operation of another one. Work counts the multiplications
// and additions of products, causal halves only; bytes those of operations that
// memory bounds.
type backend struct {
	compute.Backend
	spans *Spans
}

// New returns b with each operation in spans. Closing it closes b.
func New(b compute.Backend, spans *Spans) compute.Backend { return &backend{b, spans} }

func length(b compute.Buffer) float64 { return float64(b.Len()) }

func product(sizes ...int) float64 {
	p := 1.0
	for _, s := range sizes {
		p *= float64(s)
	}
	return p
}

func (b *backend) Zero(dst compute.Buffer) {
	defer b.spans.begin(Span{Name: "zero", Bytes: 4 * length(dst)})()
	b.Backend.Zero(dst)
}

func (b *backend) Copy(dst, src compute.Buffer) {
	defer b.spans.begin(Span{Name: "copy", Bytes: 8 * length(dst)})()
	b.Backend.Copy(dst, src)
}

func (b *backend) Add(dst, src compute.Buffer) {
	defer b.spans.begin(Span{Name: "add", Bytes: 12 * length(dst)})()
	b.Backend.Add(dst, src)
}

func (b *backend) Embed(out, wte, wpe compute.Buffer, tokens []int32, rows, t, c int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "embedding", Bytes: 12 * product(rows, t, c)})()
	b.Backend.Embed(out, wte, wpe, tokens, rows, t, c, drop)
}

func (b *backend) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, rows, t, c int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "embedding, backward", Bytes: 20 * product(rows, t, c)})()
	b.Backend.EmbedGrad(dwte, dwpe, dout, tokens, rows, t, c, drop)
}

func (b *backend) LayerNorm(out, mean, rstd, x, weight, bias compute.Buffer, m, c int) {
	defer b.spans.begin(Span{Name: "layer norm", Bytes: 8 * product(m, c)})()
	b.Backend.LayerNorm(out, mean, rstd, x, weight, bias, m, c)
}

func (b *backend) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	defer b.spans.begin(Span{Name: "layer norm, backward", Bytes: 16 * product(m, c)})()
	b.Backend.LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd, m, c)
}

func (b *backend) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	defer b.spans.begin(Span{Name: "linear", FLOPs: 2 * product(m, k, n)})()
	b.Backend.Linear(y, x, w, bias, m, k, n)
}

func (b *backend) LinearGELU(y, pre, x, w, bias compute.Buffer, m, k, n int, kind compute.GELU) {
	defer b.spans.begin(Span{Name: "linear + GELU", FLOPs: 2 * product(m, k, n)})()
	b.Backend.LinearGELU(y, pre, x, w, bias, m, k, n, kind)
}

func (b *backend) LinearResidual(y, residual, x, w, bias compute.Buffer, m, k, n int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "linear + residual", FLOPs: 2 * product(m, k, n)})()
	b.Backend.LinearResidual(y, residual, x, w, bias, m, k, n, drop)
}

func (b *backend) LinearGrad(dx, dw, dbias, dy, x, w compute.Buffer, m, k, n int) {
	defer b.spans.begin(Span{Name: "linear, backward", FLOPs: 4 * product(m, k, n)})()
	b.Backend.LinearGrad(dx, dw, dbias, dy, x, w, m, k, n)
}

func (b *backend) LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w compute.Buffer, m, k, n int, kind compute.GELU) {
	defer b.spans.begin(Span{Name: "linear + GELU, backward", FLOPs: 4 * product(m, k, n)})()
	b.Backend.LinearGELUGrad(dpre, dw, dbias, dy, act, pre, w, m, k, n, kind)
}

func (b *backend) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "dropout, backward", Bytes: 8 * product(m, c)})()
	b.Backend.DropoutGrad(dx, dy, m, c, drop)
}

func (b *backend) Attention(out, lse, qkv compute.Buffer, rows, t, h, d int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "attention", FLOPs: 2 * product(rows, h, t, t+1, d)})()
	b.Backend.Attention(out, lse, qkv, rows, t, h, d, drop)
}

func (b *backend) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, rows, t, h, d int, drop compute.Dropout) {
	defer b.spans.begin(Span{Name: "attention, backward", FLOPs: 5 * product(rows, h, t, t+1, d)})()
	b.Backend.AttentionGrad(dqkv, dout, qkv, out, lse, rows, t, h, d, drop)
}

func (b *backend) Logits(logits, x, w compute.Buffer, m, c, v int) {
	defer b.spans.begin(Span{Name: "logits", FLOPs: 2 * product(m, c, v)})()
	b.Backend.Logits(logits, x, w, m, c, v)
}

func (b *backend) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	defer b.spans.begin(Span{Name: "logits, backward", FLOPs: 4 * product(m, c, v)})()
	b.Backend.LogitsGrad(dx, dw, dlogits, x, w, m, c, v, accumulate)
}

func (b *backend) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	defer b.spans.begin(Span{Name: "cross-entropy", Bytes: 8 * product(m, v)})()
	b.Backend.CrossEntropy(loss, logits, targets, m, v, grad)
}

func (b *backend) AdamW(p, g, m, v compute.Buffer, a compute.AdamW) {
	defer b.spans.begin(Span{Name: "AdamW", Bytes: 28 * length(p)})()
	b.Backend.AdamW(p, g, m, v, a)
}

func (b *backend) SumSquares(x compute.Buffer) float64 {
	defer b.spans.begin(Span{Name: "gradient norm", Bytes: 4 * length(x)})()
	return b.Backend.SumSquares(x)
}

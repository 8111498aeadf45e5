package model

import "ddp/model/compute"

// forward computes the activations of x[B,T] up to ln_f's output.
func (g *GPT) forward(x []int32, p pass) {
	k, a, w := g.backend, g.acts, g.weights
	a.resize(p.m, g.cfg.Embed)
	k.Embed(a.stream[0], w.wte, w.wpe, x, p.b, p.t, g.cfg.Embed, p.dropout(p.embd, 0, compute.SiteEmbedding))
	for i := range w.blocks {
		if p.halted() {
			return
		}
		g.forwardBlock(i, p)
	}
	g.norm(a.lnf, a.stream[g.cfg.Layers], w.lnf)
}

// forwardBlock computes stream[i+1] from stream[i].
func (g *GPT) forwardBlock(i int, p pass) {
	k, w, a := g.backend, &g.weights.blocks[i], &g.acts.blocks[i]
	in, out := g.acts.stream[i], g.acts.stream[i+1]
	m, c, h := p.m, g.cfg.Embed, g.cfg.Heads

	g.norm(a.ln1, in, w.ln1)
	k.Linear(a.qkv, a.ln1.out, w.qkv.weight, w.qkv.bias, m, c, 3*c)
	k.Attention(a.attn, a.lse, a.qkv, p.b, p.t, h, c/h, p.dropout(p.attn, i, compute.SiteAttention))
	k.LinearResidual(a.mid, in, a.attn, w.attnProj.weight, w.attnProj.bias, m, c, c,
		p.dropout(p.resid, i, compute.SiteAttentionProjection))

	g.norm(a.ln2, a.mid, w.ln2)
	k.LinearGELU(a.act, a.pre, a.ln2.out, w.fc.weight, w.fc.bias, m, c, 4*c, g.cfg.GELU)
	k.LinearResidual(out, a.mid, a.act, w.mlpProj.weight, w.mlpProj.bias, m, 4*c, c,
		p.dropout(p.resid, i, compute.SiteMLPProjection))
}

// norm is n = LayerNorm(x) with parameters w.
func (g *GPT) norm(n normed, x compute.Buffer, w affine) {
	g.backend.LayerNorm(n.out, n.mean, n.rstd, x, w.weight, w.bias, n.mean.Len(), g.cfg.Embed)
}

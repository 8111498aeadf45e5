package model

import "ddp/model/compute"

// backward follows forward and headLoss from the end to the start. On entry
// dbranch holds the gradient of ln_f's output.
func (g *GPT) backward(x []int32, p pass, ready func(lo, hi int)) {
	k, a, d := g.backend, g.acts, g.grads
	end := d.flatLen()
	final := func(lo int) {
		if ready != nil {
			ready(lo, end)
		}
		end = lo
	}
	k.Zero(a.dstream)
	g.normGrad(a.lnf, a.stream[g.cfg.Layers], g.weights.lnf, d.lnf)
	final(g.starts.lnf)
	for i := g.cfg.Layers - 1; i >= 0; i-- {
		if p.halted() {
			return
		}
		g.backwardMLP(i, p)
		final(g.starts.blocks[i].mlp)
		g.backwardAttention(i, p)
		final(g.starts.blocks[i].attn)
	}
	g.backwardEmbedding(x, p)
	final(0)
}

// backwardMLP turns dstream from the gradient of stream[i+1] into that of mid.
func (g *GPT) backwardMLP(i int, p pass) {
	k, a, s := g.backend, &g.acts.blocks[i], g.acts
	w, d := &g.weights.blocks[i], &g.grads.blocks[i]
	m, c := p.m, g.cfg.Embed
	dout := g.branchGrad(p.dropout(p.resid, i, compute.SiteMLPProjection))
	k.LinearGELUGrad(s.dpre, d.mlpProj.weight, d.mlpProj.bias, dout, a.act, a.pre, w.mlpProj.weight, m, 4*c, c, g.cfg.GELU)
	k.LinearGrad(s.dbranch, d.fc.weight, d.fc.bias, s.dpre, a.ln2.out, w.fc.weight, m, c, 4*c)
	g.normGrad(a.ln2, a.mid, w.ln2, d.ln2)
}

// backwardAttention turns dstream from the gradient of mid into that of stream[i].
func (g *GPT) backwardAttention(i int, p pass) {
	k, a, s := g.backend, &g.acts.blocks[i], g.acts
	w, d := &g.weights.blocks[i], &g.grads.blocks[i]
	m, c, h := p.m, g.cfg.Embed, g.cfg.Heads
	dout := g.branchGrad(p.dropout(p.resid, i, compute.SiteAttentionProjection))
	k.LinearGrad(s.dattn, d.attnProj.weight, d.attnProj.bias, dout, a.attn, w.attnProj.weight, m, c, c)
	k.AttentionGrad(s.dqkv, s.dattn, a.qkv, a.attn, a.lse, p.b, p.t, h, c/h, p.dropout(p.attn, i, compute.SiteAttention))
	k.LinearGrad(s.dbranch, d.qkv.weight, d.qkv.bias, s.dqkv, a.ln1.out, w.qkv.weight, m, c, 3*c)
	g.normGrad(a.ln1, g.acts.stream[i], w.ln1, d.ln1)
}

// branchGrad is the gradient [M,C] of what a branch added to the residual
// stream, before its dropout.
func (g *GPT) branchGrad(drop compute.Dropout) compute.Buffer {
	if drop.P == 0 {
		return g.acts.dstream // no copy: nothing changes it before it is used
	}
	g.backend.DropoutGrad(g.acts.dbranch, g.acts.dstream, g.acts.m, g.cfg.Embed, drop)
	return g.acts.dbranch
}

// normGrad adds to dstream what flows through n = LayerNorm(x), whose output's
// gradient is in dbranch.
func (g *GPT) normGrad(n normed, x compute.Buffer, w, d affine) {
	a := g.acts
	g.backend.LayerNormGrad(a.dstream, d.weight, d.bias, a.dbranch, x, w.weight, n.mean, n.rstd, a.m, g.cfg.Embed)
}

// backwardEmbedding ends the pass. A tied wte already holds the head's share.
func (g *GPT) backwardEmbedding(x []int32, p pass) {
	if !g.cfg.Tied {
		g.backend.Zero(g.grads.wte)
	}
	g.backend.Zero(g.grads.wpe)
	g.backend.EmbedGrad(g.grads.wte, g.grads.wpe, g.acts.dstream, x, p.b, p.t, g.cfg.Embed,
		p.dropout(p.embd, 0, compute.SiteEmbedding))
}

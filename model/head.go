package model

// headFloats bounds the logits that are in memory at once: 32 MB.
const headFloats = 8 << 20

// headRows is the number of rows whose logits are computed at once. It depends
// on the configuration alone, so that a shard's sums are cut alike everywhere.
func headRows(c Config) int {
	rows := headFloats / c.VocabSize
	return max(align, rows/align*align)
}

// headLogits computes the logits of rows lo to hi-1, at most g.chunk of them.
func (g *GPT) headLogits(lo, hi int) {
	c, v := g.cfg.Embed, g.cfg.VocabSize
	logits := g.acts.logits.Slice(0, (hi-lo)*v)
	g.backend.Logits(logits, g.acts.lnf.out.Slice(lo*c, hi*c), g.weights.head, hi-lo, c, v)
}

// headLoss fills loss[M]. With grad it also sets the head's gradient, and
// dbranch to the gradient of ln_f's output.
func (g *GPT) headLoss(y []int32, grad bool) {
	a, c, v := g.acts, g.cfg.Embed, g.cfg.VocabSize
	for lo := 0; lo < len(y); lo += g.chunk {
		hi := min(lo+g.chunk, len(y))
		g.headLogits(lo, hi)
		logits := a.logits.Slice(0, (hi-lo)*v)
		g.backend.CrossEntropy(a.loss.Slice(lo, hi), logits, y[lo:hi], hi-lo, v, grad)
		if grad {
			g.backend.LogitsGrad(a.dbranch.Slice(lo*c, hi*c), g.grads.head, logits, a.lnf.out.Slice(lo*c, hi*c),
				g.weights.head, hi-lo, c, v, lo > 0)
		}
	}
}

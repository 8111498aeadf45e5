package model

import "ddp/model/compute"

// activations are all that a forward pass keeps and a backward pass needs.
// They are allocated once, for the largest batch; resize makes the views fit
// the batch at hand. Rows are M = B·T.
type activations struct {
	stream []compute.Buffer // [L+1][M,C]: the residual stream before each block, and at the end
	blocks []blockActivations
	lnf    normed
	loss   compute.Buffer // [M]
	logits compute.Buffer // [chunk,V]: of the rows that the head works on

	// Backward buffers, shared by all layers.
	dstream compute.Buffer // [M,C]: gradient of the residual stream
	dbranch compute.Buffer // [M,C]: of a branch's output, then of its LayerNorm's output
	dattn   compute.Buffer // [M,C]: of attention's output
	dqkv    compute.Buffer // [M,3C]
	dpre    compute.Buffer // [M,4C]; the same memory as dqkv

	rows []rowBuffer
	m    int // rows in view
}

// normed is a LayerNorm's output [M,C] with the statistics [M] of its rows.
type normed struct {
	out, mean, rstd compute.Buffer
}

// blockActivations belong to one transformer block.
type blockActivations struct {
	ln1  normed
	qkv  compute.Buffer // [M,3C]
	lse  compute.Buffer // [B,H,T]
	attn compute.Buffer // [M,C]
	mid  compute.Buffer // [M,C]: the residual stream between attention and MLP
	ln2  normed
	pre  compute.Buffer // [M,4C]: before GELU
	act  compute.Buffer // [M,4C]: after GELU
}

// rowBuffer has width values for each row; view is its part for the current rows.
type rowBuffer struct {
	view  *compute.Buffer
	full  compute.Buffer
	width int
}

// plan lists c's activations for at most m rows; it allocates nothing.
func plan(c Config) *activations {
	a := &activations{stream: make([]compute.Buffer, c.Layers+1), blocks: make([]blockActivations, c.Layers)}
	add := func(view *compute.Buffer, width int) { a.rows = append(a.rows, rowBuffer{view: view, width: width}) }
	norm := func(n *normed) {
		add(&n.out, c.Embed)
		add(&n.mean, 1)
		add(&n.rstd, 1)
	}
	for i := range a.stream {
		add(&a.stream[i], c.Embed)
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		norm(&b.ln1)
		add(&b.qkv, 3*c.Embed)
		add(&b.lse, c.Heads)
		add(&b.attn, c.Embed)
		add(&b.mid, c.Embed)
		norm(&b.ln2)
		add(&b.pre, 4*c.Embed)
		add(&b.act, 4*c.Embed)
	}
	norm(&a.lnf)
	add(&a.loss, 1)
	add(&a.dstream, c.Embed)
	add(&a.dbranch, c.Embed)
	add(&a.dattn, c.Embed)
	add(&a.dpre, 4*c.Embed)
	return a
}

// newActivations allocates for batches of at most maxBatch sequences.
func newActivations(c Config, b compute.Backend, maxBatch int) *activations {
	a := plan(c)
	m := maxBatch * c.BlockSize
	for i := range a.rows {
		a.rows[i].full = b.Alloc(m * a.rows[i].width)
	}
	a.logits = b.Alloc(min(headRows(c), m) * c.VocabSize)
	return a
}

// resize makes all views m rows long.
func (a *activations) resize(m, c int) {
	if a.m == m {
		return
	}
	a.m = m
	for _, r := range a.rows {
		*r.view = r.full.Slice(0, m*r.width)
	}
	a.dqkv = a.dpre.Slice(0, m*3*c)
}

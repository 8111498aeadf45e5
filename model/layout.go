package model

import (
	"fmt"

	"ddp/model/compute"
)

// Param is one parameter tensor's place in a flat buffer.
type Param struct {
	Name   string // Hugging Face's GPT-2 name, e.g. "h.0.attn.c_attn.weight"
	Shape  []int  // weights of Linear layers are [in,out], embeddings and lm_head [V|T,C]
	Offset int    // first value; a multiple of 16, so that each tensor starts a cache line
	Len    int    // values: the product of Shape
	Decay  bool   // decays by minGPT's rule: weights of Linear layers
}

// align is the granularity of offsets, in float32 values (64 bytes).
const align = 16

// role decides how a parameter starts and whether it decays.
type role int

const (
	embedding  role = iota // normal, std 0.02; not decayed by minGPT's rule
	scale                  // LayerNorm's weight: one
	bias                   // zero; only in models with biases
	matrix                 // Linear weight: normal, std 0.02
	projection             // Linear weight that writes to the residual stream: std 0.02/sqrt(2L)
)

// decays is minGPT's rule, which goes by modules: weights of Linear layers
// decay; embeddings, biases and LayerNorms don't. A tied head is the embedding
// module's tensor and doesn't decay either.
func (r role) decays() bool { return r == matrix || r == projection }

// affine are the parameters of a Linear layer or a LayerNorm.
type affine struct {
	weight, bias compute.Buffer
}

// block are the parameters of one transformer block.
type block struct {
	ln1, qkv, attnProj, ln2, fc, mlpProj affine
}

// weights views a flat buffer, of parameters or of their gradients, by layer.
type weights struct {
	wte, wpe compute.Buffer
	blocks   []block
	lnf      affine
	head     compute.Buffer // wte itself when tied
	slots    []slot
	tied     bool
}

// slot ties a parameter to the field that views it.
type slot struct {
	Param
	role role
	view *compute.Buffer
}

// newWeights lays out c's parameters in the order of the forward pass, which is
// why gradients become ready from the end of the flat buffer to its start.
func newWeights(c Config) *weights {
	w := &weights{blocks: make([]block, c.Layers), tied: c.Tied}
	add := func(view *compute.Buffer, r role, name string, shape ...int) {
		if r == bias && !c.Bias {
			return
		}
		p := Param{Name: name, Shape: shape, Offset: w.flatLen(), Len: 1, Decay: r.decays()}
		for _, n := range shape {
			p.Len *= n
		}
		w.slots = append(w.slots, slot{p, r, view})
	}
	norm := func(a *affine, name string) {
		add(&a.weight, scale, name+".weight", c.Embed)
		add(&a.bias, bias, name+".bias", c.Embed)
	}
	linear := func(a *affine, r role, name string, in, out int) {
		add(&a.weight, r, name+".weight", in, out)
		add(&a.bias, bias, name+".bias", out)
	}
	add(&w.wte, embedding, "wte.weight", c.VocabSize, c.Embed)
	add(&w.wpe, embedding, "wpe.weight", c.BlockSize, c.Embed)
	for i := range w.blocks {
		b, h := &w.blocks[i], fmt.Sprintf("h.%d.", i)
		norm(&b.ln1, h+"ln_1")
		linear(&b.qkv, matrix, h+"attn.c_attn", c.Embed, 3*c.Embed)
		linear(&b.attnProj, projection, h+"attn.c_proj", c.Embed, c.Embed)
		norm(&b.ln2, h+"ln_2")
		linear(&b.fc, matrix, h+"mlp.c_fc", c.Embed, 4*c.Embed)
		linear(&b.mlpProj, projection, h+"mlp.c_proj", 4*c.Embed, c.Embed)
	}
	norm(&w.lnf, "ln_f")
	if !c.Tied {
		add(&w.head, matrix, "lm_head.weight", c.VocabSize, c.Embed)
	}
	return w
}

// flatLen is where the next parameter would start.
func (w *weights) flatLen() int {
	if len(w.slots) == 0 {
		return 0
	}
	last := w.slots[len(w.slots)-1]
	return (last.Offset + last.Len + align - 1) / align * align
}

// bind points every field at its part of flat.
func (w *weights) bind(flat compute.Buffer) {
	for _, s := range w.slots {
		*s.view = flat.Slice(s.Offset, s.Offset+s.Len)
	}
	if w.tied {
		w.head = w.wte
	}
}

// starts are the flat offsets at which the parts of the network begin whose
// gradients become final together.
type starts struct {
	blocks []struct{ attn, mlp int } // attn from ln_1 on, mlp from ln_2 on
	lnf    int                       // with the head, unless tied
}

func (w *weights) starts() starts {
	at := map[*compute.Buffer]int{}
	for _, s := range w.slots {
		at[s.view] = s.Offset
	}
	s := starts{lnf: at[&w.lnf.weight]}
	for i := range w.blocks {
		b := &w.blocks[i]
		s.blocks = append(s.blocks, struct{ attn, mlp int }{at[&b.ln1.weight], at[&b.ln2.weight]})
	}
	return s
}

// Params are the parameters in the order of the flat buffer.
func (c Config) Params() []Param {
	slots := newWeights(c).slots
	params := make([]Param, len(slots))
	for i, s := range slots {
		params[i] = s.Param
	}
	return params
}

// FlatLen is the length of a flat buffer in float32 values, padding included;
// a multiple of 16.
func (c Config) FlatLen() int { return newWeights(c).flatLen() }

// NumParams is the number of trained values; a tied head counts once.
func (c Config) NumParams() int {
	n := 0
	for _, s := range newWeights(c).slots {
		n += s.Len
	}
	return n
}

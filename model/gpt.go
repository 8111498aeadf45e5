package model

import (
	"fmt"

	"ddp/model/compute"
)

// GPT is a model on one back end: parameters, and memory for the activations
// of one batch. It is used by one goroutine at a time, and a step allocates
// nothing. Its memory is the back end's and lives until Backend.Close.
type GPT struct {
	cfg     Config
	backend compute.Backend
	flat    compute.Buffer
	weights *weights // views of flat
	grads   *weights // views of the gradient buffer of the call at hand
	acts    *activations
	chunk   int // rows of the head at a time
	starts  starts
	limit   int // sequences of a batch
	halt    <-chan struct{}
}

// New builds a model whose batches have at most maxBatch sequences. All
// parameters are zero: call Init, or load them into Params.
func New(c Config, b compute.Backend, maxBatch int) (*GPT, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if maxBatch < 1 {
		return nil, fmt.Errorf("model: batches of at most %d sequences, want at least 1", maxBatch)
	}
	g := &GPT{cfg: c, backend: b, limit: maxBatch, chunk: headRows(c),
		weights: newWeights(c), grads: newWeights(c), acts: newActivations(c, b, maxBatch)}
	g.flat = b.Alloc(g.weights.flatLen())
	g.weights.bind(g.flat)
	g.starts = g.weights.starts()
	return g, nil
}

// Config is what the model was built from.
func (g *GPT) Config() Config { return g.cfg }

// Params is the flat parameter buffer, laid out as Config.Params says. Writing
// to its padding is not allowed.
func (g *GPT) Params() compute.Buffer { return g.flat }

// Draw is the dropout of one batch: a sequence's random numbers depend on
// Seed, Step and FirstSample plus its index in the batch.
type Draw struct {
	Seed        uint64
	Step        uint32
	FirstSample uint32 // of this batch, counted over the whole step's batch
}

// pass is the shape and the dropout of one forward pass and its backward pass.
type pass struct {
	b, t, m           int // sequences, tokens of each, rows b·t
	draw              Draw
	embd, resid, attn float32 // dropout rates; 0 outside training
	halt              <-chan struct{}
}

// dropout is the stream of one place of the network.
func (p pass) dropout(rate float32, layer int, site compute.Site) compute.Dropout {
	return compute.Dropout{P: rate, Seed: p.draw.Seed, Step: p.draw.Step, FirstSample: p.draw.FirstSample,
		Layer: uint32(layer), Site: site, RowsPer: p.t}
}

// pass checks a batch and gives its shape. A wrong shape or token is the
// caller's bug and panics: a back end would read outside its memory.
func (g *GPT) pass(x, y []int32, batch int) pass {
	if batch < 1 || batch > g.limit {
		panic(fmt.Sprintf("model: batch of %d sequences, want 1 to %d", batch, g.limit))
	}
	t := len(x) / batch
	if t < 1 || t > g.cfg.BlockSize || t*batch != len(x) {
		panic(fmt.Sprintf("model: %d tokens in %d sequences, want sequences of 1 to %d tokens", len(x), batch, g.cfg.BlockSize))
	}
	for i, token := range x {
		if token < 0 || int(token) >= g.cfg.VocabSize {
			panic(fmt.Sprintf("model: token %d at place %d is outside the vocabulary of %d", token, i, g.cfg.VocabSize))
		}
	}
	if y != nil && len(y) != len(x) {
		panic(fmt.Sprintf("model: %d targets for %d tokens", len(y), len(x)))
	}
	for i, target := range y {
		if int(target) >= g.cfg.VocabSize {
			panic(fmt.Sprintf("model: target %d at place %d is outside the vocabulary of %d", target, i, g.cfg.VocabSize))
		}
	}
	return pass{b: batch, t: t, m: len(x)}
}

// HaltOn lets LossGrad end between two layers once done is closed. What it then
// returns and writes means nothing; no further ranges are told ready.
func (g *GPT) HaltOn(done <-chan struct{}) { g.halt = done }

// halted tells whether the pass is to end.
func (p pass) halted() bool {
	select {
	case <-p.halt:
		return true
	default:
		return false
	}
}

// LossGrad is one training pass over batch sequences of equal length: x[B,T]
// are tokens and y[B,T] the targets, negative where masked. It returns the sum
// of the unmasked targets' losses and their count, and writes the gradient of
// that sum (not of the mean) to grads, which has the layout of Config.Params;
// grads' padding is not written and must be zero.
//
// ready, unless nil, is called during the backward pass whenever a flat range
// [lo,hi) of grads is final. Ranges come from the end of grads to its start,
// each adjoining the one before, and tile [0,FlatLen) exactly.
func (g *GPT) LossGrad(x, y []int32, batch int, grads compute.Buffer, draw Draw, ready func(lo, hi int)) (lossSum float64, count int) {
	p := g.pass(x, y, batch)
	p.draw, p.halt = draw, g.halt
	p.embd, p.resid, p.attn = float32(g.cfg.EmbdDrop), float32(g.cfg.ResidDrop), float32(g.cfg.AttnDrop)
	g.grads.bind(grads)
	g.forward(x, p)
	if p.halted() {
		return 0, 0
	}
	g.headLoss(y, true)
	g.backward(x, p, ready)
	return sumLoss(g.acts.loss.Host(), y)
}

// Loss is the loss without dropout or gradient: perSequence[B] gets the sum of
// each sequence's unmasked losses, count[B] their numbers.
func (g *GPT) Loss(x, y []int32, batch int, perSequence []float64) (count []int) {
	p := g.pass(x, y, batch)
	g.forward(x, p)
	g.headLoss(y, false)
	count = make([]int, batch)
	for i := range count {
		lo, hi := i*p.t, (i+1)*p.t
		perSequence[i], count[i] = sumLoss(g.acts.loss.Host()[lo:hi], y[lo:hi])
	}
	return count
}

// sumLoss adds the losses of unmasked targets, in order, in float64.
func sumLoss(loss []float32, y []int32) (sum float64, count int) {
	for i, target := range y {
		if target >= 0 {
			sum += float64(loss[i])
			count++
		}
	}
	return sum, count
}

// Logits are the V scores of what follows tokens: 1 to BlockSize tokens of one
// sequence. The result is the caller's.
func (g *GPT) Logits(tokens []int32) []float32 {
	g.forward(tokens, g.pass(tokens, nil, 1))
	m, v := len(tokens), g.cfg.VocabSize
	g.headLogits(m-1, m)
	return append([]float32(nil), g.acts.logits.Slice(0, v).Host()...)
}

// LogitsAll are the scores [B,T,V] at every position of batch sequences of
// equal length. The result is the caller's.
func (g *GPT) LogitsAll(x []int32, batch int) []float32 {
	g.forward(x, g.pass(x, nil, batch))
	out := make([]float32, 0, len(x)*g.cfg.VocabSize)
	for lo := 0; lo < len(x); lo += g.chunk {
		hi := min(lo+g.chunk, len(x))
		g.headLogits(lo, hi)
		out = append(out, g.acts.logits.Slice(0, (hi-lo)*g.cfg.VocabSize).Host()...)
	}
	return out
}

// Predict is the likeliest next token after each position of one sequence of 1
// to BlockSize tokens; of equals the lowest.
func (g *GPT) Predict(tokens []int32) []int32 {
	logits, v := g.LogitsAll(tokens, 1), g.cfg.VocabSize
	best := make([]int32, len(tokens))
	for i := range best {
		best[i] = argmax(logits[i*v : (i+1)*v])
	}
	return best
}

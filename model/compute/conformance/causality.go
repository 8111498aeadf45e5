package conformance

import (
	"fmt"
	"slices"

	"ddp/model/compute"
)

// The sizes of the checks of causality: more than one block of queries.
const (
	seqs, tokens, heads, headSize = 2, 37, 2, 24
	channels                      = heads * headSize
)

// attended is one forward and backward pass over qkv with dropout.
type attended struct {
	out, dqkv []float32
}

func attend(b compute.Backend, qkv, dout []float32) attended {
	place := func(values []float32) compute.Buffer {
		buffer := b.Alloc(len(values))
		copy(buffer.Host(), values)
		return buffer
	}
	x, g := place(qkv), place(dout)
	o, lse, dx := b.Alloc(len(dout)), b.Alloc(seqs*heads*tokens), b.Alloc(len(qkv))
	drop := draw(0.2, 0)
	b.Attention(o, lse, x, seqs, tokens, heads, headSize, drop)
	b.AttentionGrad(dx, g, x, o, lse, seqs, tokens, heads, headSize, drop)
	return attended{o.Host(), dx.Host()}
}

// values are n of them.
func values(n int, fill func(int) float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = fill(i)
	}
	return x
}

// from replaces what rows of width values hold from position cut on.
func from(cut, width int, x []float32, later func(int) float32) []float32 {
	x = slices.Clone(x)
	for i := range x {
		if i/width%tokens >= cut {
			x[i] = later(i)
		}
	}
	return x
}

// earlier compares two passes that differ from position cut on, row by row up
// to there.
func earlier(cut int, a, b attended, same func(a, b attended, row int) bool) error {
	for row := range seqs * tokens {
		if row%tokens < cut && !same(a, b, row) {
			return fmt.Errorf("position %d sees position %d or later", row%tokens, cut)
		}
	}
	return nil
}

// changes runs both passes with what is later replaced, for every cut; the sign
// alternates, so that nothing later happens to be alike in all.
func changes(b compute.Backend, later func(int) float32, same func(a, b attended, row int) bool) error {
	qkv, dout := values(seqs*tokens*3*channels, normal(1, 1)), values(seqs*tokens*channels, normal(2, 1))
	want := attend(b, qkv, dout)
	for cut := 1; cut < tokens; cut++ {
		sign := float32(1 - cut%2*2)
		replaced := func(i int) float32 { return sign * later(i) }
		got := attend(b, from(cut, 3*channels, qkv, replaced), from(cut, channels, dout, replaced))
		if err := earlier(cut, got, want, same); err != nil {
			return err
		}
	}
	return nil
}

// earlierOutputs wants outputs bit-identical whatever is later.
func earlierOutputs(b compute.Backend, later func(int) float32) error {
	return changes(b, later, func(x, y attended, row int) bool {
		lo, hi := row*channels, (row+1)*channels
		return firstDifference(x.out[lo:hi], y.out[lo:hi]) < 0
	})
}

// earlierQueries wants the same of gradients of queries, which depend on nothing later.
func earlierQueries(b compute.Backend) error {
	return changes(b, normal(9, 1), func(x, y attended, row int) bool {
		lo, hi := row*3*channels, row*3*channels+channels
		return firstDifference(x.dqkv[lo:hi], y.dqkv[lo:hi]) < 0
	})
}

// laterSilence wants the gradients of keys and values too to be those of earlier
// positions alone, when later ones have none to pass back.
func laterSilence(b compute.Backend) error {
	qkv, dout := values(seqs*tokens*3*channels, normal(1, 1)), values(seqs*tokens*channels, normal(2, 1))
	for cut := 1; cut < tokens; cut++ {
		silent := from(cut, channels, dout, zero)
		a, b := attend(b, qkv, silent), attend(b, from(cut, 3*channels, qkv, normal(9, 1)), silent)
		err := earlier(cut, a, b, func(x, y attended, row int) bool {
			lo, hi := row*3*channels, (row+1)*3*channels
			return slices.Equal(x.dqkv[lo:hi], y.dqkv[lo:hi])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

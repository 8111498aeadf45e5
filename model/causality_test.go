package model

import (
	"slices"
	"testing"

	"ddp/model/compute"
)

// TestCausality: a token changes no logit before it, to the last bit, and does
// change its own.
func TestCausality(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		c := small
		c.BlockSize = 19
		g := build(t, c, b, 1)
		x, _ := tokensOf(c.BlockSize, c.VocabSize)
		want := g.LogitsAll(x, 1)
		for at := range x {
			changed := slices.Clone(x)
			changed[at] = (changed[at] + 1) % int32(c.VocabSize)
			got := g.LogitsAll(changed, 1)
			if before := at * c.VocabSize; !slices.Equal(got[:before], want[:before]) {
				t.Errorf("token %d changed an earlier logit", at)
			}
			if own := at * c.VocabSize; slices.Equal(got[own:own+c.VocabSize], want[own:own+c.VocabSize]) {
				t.Errorf("token %d changed none of its own logits", at)
			}
		}
	})
}

// TestLogitsOfTheLastPosition agree with those of all positions, for sequences
// shorter than the block too.
func TestLogitsOfTheLastPosition(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		g := build(t, small, b, 1)
		x, _ := tokensOf(small.BlockSize, small.VocabSize)
		all := g.LogitsAll(x, 1)
		for n := 1; n <= len(x); n++ {
			want := all[(n-1)*small.VocabSize : n*small.VocabSize]
			compare(t, "last logits", g.Logits(x[:n]), want)
			if got := g.Predict(x[:n])[n-1]; got != argmax(want) {
				t.Errorf("after %d tokens: predicts %d, want %d", n, got, argmax(want))
			}
		}
	})
}

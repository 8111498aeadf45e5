package model

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

func text(t *testing.T, g *GPT, prompt []int32, o GenerateOptions) []int32 {
	t.Helper()
	var out []int32
	if err := Generate(g, prompt, o, func(token int32) error { out = append(out, token); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGreedyText equals a loop over LogitsAll, far past the block, from prompts
// shorter and longer than it.
func TestGreedyText(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		g := build(t, small, b, 1)
		for _, length := range []int{1, small.BlockSize, 2*small.BlockSize + 1} {
			prompt, _ := tokensOf(length, small.VocabSize)
			all := slices.Clone(prompt)
			for range 3 * small.BlockSize {
				seen := all[max(0, len(all)-small.BlockSize):]
				logits := g.LogitsAll(seen, 1)
				all = append(all, argmax(logits[len(logits)-small.VocabSize:]))
			}
			if got := text(t, g, prompt, GenerateOptions{MaxTokens: 3 * small.BlockSize, Stop: -1}); !slices.Equal(got, all[length:]) {
				t.Errorf("prompt of %d: %v, want %v", length, got, all[length:])
			}
		}
	})
}

// TestGreedyTies: with all parameters zero every token is as likely; the lowest wins.
func TestGreedyTies(t *testing.T) {
	g, err := New(small, ref.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, g, []int32{5}, GenerateOptions{MaxTokens: 3, Stop: -1}); !slices.Equal(got, []int32{0, 0, 0}) {
		t.Errorf("ties give %v", got)
	}
}

func TestSeeds(t *testing.T) {
	g := build(t, small, ref.New(), 1)
	o := GenerateOptions{MaxTokens: 30, Temperature: 1, Seed: 3, Stop: -1}
	want := text(t, g, []int32{1}, o)
	if got := text(t, g, []int32{1}, o); !slices.Equal(got, want) {
		t.Errorf("the same seed gives %v and %v", want, got)
	}
	for _, off := range []GenerateOptions{{TopK: small.VocabSize}, {TopK: math.MaxInt}, {TopP: 1}} {
		same := o
		same.TopK, same.TopP = off.TopK, off.TopP
		if got := text(t, g, []int32{1}, same); !slices.Equal(got, want) {
			t.Errorf("top-k %d, top-p %v change the text", off.TopK, off.TopP)
		}
	}
	o.Seed = 4
	if got := text(t, g, []int32{1}, o); slices.Equal(got, want) {
		t.Error("another seed gives the same text")
	}
	greedy := text(t, g, []int32{1}, GenerateOptions{MaxTokens: 30, Stop: -1})
	for name, o := range map[string]GenerateOptions{
		"top-k 1": {TopK: 1, Temperature: 5}, "tiny top-p": {TopP: 1e-9, Temperature: 5}, "tiny temperature": {Temperature: 1e-9},
	} {
		o.MaxTokens, o.Stop = 30, -1
		if got := text(t, g, []int32{1}, o); !slices.Equal(got, greedy) {
			t.Errorf("%s gives %v, greedy %v", name, got, greedy)
		}
	}
}

// TestDistribution: tokens are drawn as often as the softmax says, and those
// that top-k or top-p rule out never.
func TestDistribution(t *testing.T) {
	logits := []float32{1, 3, 2, 3, -5, 0}
	for name, test := range map[string]struct {
		o    GenerateOptions
		kept []int
	}{
		"all":              {GenerateOptions{Temperature: 1}, []int{0, 1, 2, 3, 4, 5}},
		"temperature 2":    {GenerateOptions{Temperature: 2}, []int{0, 1, 2, 3, 4, 5}},
		"top-k 2":          {GenerateOptions{Temperature: 1, TopK: 2}, []int{1, 3}},
		"top-k 3":          {GenerateOptions{Temperature: 1, TopK: 3}, []int{1, 2, 3}},
		"top-p .5":         {GenerateOptions{Temperature: 1, TopP: 0.5}, []int{1, 3}},
		"top-p .9":         {GenerateOptions{Temperature: 1, TopP: 0.9}, []int{1, 2, 3}},
		"top-k, then p":    {GenerateOptions{Temperature: 1, TopK: 3, TopP: 0.7}, []int{1, 3}},
		"top-k 1 of a tie": {GenerateOptions{Temperature: 1, TopK: 1}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			want, sum := make([]float64, len(logits)), 0.0
			for _, i := range test.kept {
				want[i] = math.Exp(float64(logits[i]) / test.o.Temperature)
				sum += want[i]
			}
			const draws = 20000
			counts := make([]float64, len(logits))
			for i := range draws {
				token, err := test.o.choose(logits, i)
				if err != nil {
					t.Fatal(err)
				}
				counts[token]++
			}
			for i := range want {
				p := want[i] / sum
				if math.Abs(counts[i]/draws-p) > 5*math.Sqrt(p*(1-p)/draws) {
					t.Errorf("token %d drawn %.4f of the time, want %.4f", i, counts[i]/draws, p)
				}
			}
		})
	}
}

func TestStop(t *testing.T) {
	g := build(t, small, ref.New(), 1)
	o := GenerateOptions{MaxTokens: 40, Temperature: 1, Stop: -1}
	full := text(t, g, []int32{1}, o)
	o.Stop = full[10]
	want := full[:slices.Index(full, o.Stop)]
	if got := text(t, g, []int32{1}, o); !slices.Equal(got, want) {
		t.Errorf("stopping at %d gives %v, want %v", o.Stop, got, want)
	}
	halt := errors.New("enough")
	n := 0
	err := Generate(g, []int32{1}, GenerateOptions{MaxTokens: 40, Stop: -1}, func(int32) error {
		if n++; n == 3 {
			return halt
		}
		return nil
	})
	if !errors.Is(err, halt) || n != 3 {
		t.Errorf("after %d tokens: %v", n, err)
	}
}

func TestGenerateRejects(t *testing.T) {
	g := build(t, small, ref.New(), 1)
	for want, test := range map[string]struct {
		prompt []int32
		o      GenerateOptions
	}{
		"prompt is empty":                {nil, GenerateOptions{MaxTokens: 1}},
		"token 11 at place 1 is outside": {[]int32{0, 11}, GenerateOptions{MaxTokens: 1}},
		"token -1 at place 0 is outside": {[]int32{-1}, GenerateOptions{MaxTokens: 1}},
		"max tokens is -1":               {[]int32{0}, GenerateOptions{MaxTokens: -1}},
		"temperature is -0.5":            {[]int32{0}, GenerateOptions{Temperature: -0.5}},
		"temperature is NaN":             {[]int32{0}, GenerateOptions{Temperature: math.NaN()}},
		"top-k is -2":                    {[]int32{0}, GenerateOptions{TopK: -2}},
		"top-p is 1.5":                   {[]int32{0}, GenerateOptions{TopP: 1.5}},
	} {
		err := Generate(g, test.prompt, test.o, func(int32) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	fill(g.Params().Host(), float32(math.NaN()))
	err := Generate(g, []int32{0}, GenerateOptions{MaxTokens: 1}, func(int32) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "token 0: the model's scores are not finite") {
		t.Errorf("error %v from a model of NaNs", err)
	}
}

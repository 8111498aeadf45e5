package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ddp/model/compute"
)

// Config is the shape of a GPT. The zero value is not usable: all five sizes
// must be set.
type Config struct {
	VocabSize int // V: symbols, exactly those of the tokenizer (no padding)
	BlockSize int // T: the most tokens that the model sees at once
	Layers    int // L: transformer blocks
	Heads     int // H: attention heads; divides Embed
	Embed     int // C: channels

	Tied bool         // the output head is the token embedding
	Bias bool         // Linear and LayerNorm layers have biases (lm_head never has)
	GELU compute.GELU // tanh or exact

	// Dropout rates in [0,1): after the embedding, before each residual sum,
	// and of attention's probabilities.
	EmbdDrop, ResidDrop, AttnDrop float64
}

// preset is a published size by name.
type preset struct {
	name                 string
	layers, heads, embed int
}

// presets are minGPT's, from the largest family to the smallest.
var presets = []preset{
	{"openai-gpt", 12, 12, 768},
	{"gpt2", 12, 12, 768},
	{"gpt2-medium", 24, 16, 1024},
	{"gpt2-large", 36, 20, 1280},
	{"gpt2-xl", 48, 25, 1600},
	{"gopher-44m", 8, 16, 512},
	{"gpt-mini", 6, 6, 192},
	{"gpt-micro", 4, 4, 128},
	{"gpt-nano", 3, 3, 48},
}

// Preset returns the sizes of one of minGPT's models, with biases and the tanh
// GELU. VocabSize, BlockSize, Tied and dropout stay zero: they are the job's.
func Preset(name string) (Config, bool) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return Config{}, false
	}
	p := presets[i]
	return Config{Layers: p.layers, Heads: p.heads, Embed: p.embed, Bias: true, GELU: compute.GELUTanh}, true
}

// Presets are the names that Preset knows.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// maxElements bounds what one tensor or one sample's dropout may hold, so that
// every element has its own 32-bit counter.
const maxElements = 1 << 32

// Validate reports all that keeps c from being built, in one line.
func (c Config) Validate() error {
	var problems []string
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	for _, s := range []struct {
		name  string
		value int
	}{
		{"vocabulary size", c.VocabSize}, {"block size", c.BlockSize}, {"number of layers", c.Layers},
		{"number of heads", c.Heads}, {"number of channels", c.Embed},
	} {
		check(s.value >= 1 && s.value <= math.MaxInt32, "%s is %d, want 1 to 2^31-1", s.name, s.value)
	}
	for _, r := range []struct {
		name string
		rate float64
	}{{"embedding", c.EmbdDrop}, {"residual", c.ResidDrop}, {"attention", c.AttnDrop}} {
		check(r.rate >= 0 && r.rate < 1, "%s dropout is %v, want at least 0 and less than 1", r.name, r.rate)
	}
	check(c.GELU == compute.GELUTanh || c.GELU == compute.GELUExact, "unknown kind of GELU %d", c.GELU)
	if len(problems) == 0 {
		check(c.Embed%c.Heads == 0, "%d channels can't be shared by %d heads: not divisible", c.Embed, c.Heads)
		check(fits(c.VocabSize, c.Embed) && fits(c.BlockSize, c.Embed) && fits(4, c.Embed, c.Embed),
			"too large: a tensor would hold more than 2^32 values")
		check(c.AttnDrop == 0 || fits(c.Heads, c.BlockSize, c.BlockSize),
			"too large for attention dropout: %d heads x %d x %d tokens is more than 2^32", c.Heads, c.BlockSize, c.BlockSize)
	}
	if len(problems) > 0 {
		return errors.New("model: " + strings.Join(problems, "; "))
	}
	return nil
}

// fits reports whether the product of positive numbers is at most maxElements.
func fits(factors ...int) bool {
	product := 1
	for _, f := range factors {
		if f > maxElements/product {
			return false
		}
		product *= f
	}
	return true
}

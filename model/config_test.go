package model

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// gpt2Size gives a preset GPT-2's vocabulary and block.
func gpt2Size(t *testing.T, name string, tied bool) Config {
	t.Helper()
	c, ok := Preset(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	c.VocabSize, c.BlockSize, c.Tied = 50257, 1024, tied
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestParameterCounts: the published sizes of GPT-2, and minGPT's small ones by hand.
func TestParameterCounts(t *testing.T) {
	for name, want := range map[string]int{
		"gpt2": 124_439_808, "openai-gpt": 124_439_808, "gpt2-medium": 354_823_168,
		"gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
	} {
		if got := gpt2Size(t, name, true).NumParams(); got != want {
			t.Errorf("%s: %d parameters, want %d", name, got, want)
		}
	}
	if got, want := gpt2Size(t, "gpt2", false).NumParams(), 124_439_808+50257*768; got != want {
		t.Errorf("gpt2 with a head of its own: %d parameters, want %d", got, want)
	}
	for name, size := range map[string][3]int{"gopher-44m": {8, 16, 512}, "gpt-mini": {6, 6, 192}, "gpt-micro": {4, 4, 128}, "gpt-nano": {3, 3, 48}} {
		c := gpt2Size(t, name, true)
		if got := [3]int{c.Layers, c.Heads, c.Embed}; got != size {
			t.Errorf("%s is %v, want %v", name, got, size)
		}
	}
	if _, ok := Preset("gpt3"); ok {
		t.Error("gpt3 is a preset")
	}
	if n := len(Presets()); n != 9 {
		t.Errorf("%d presets, want 9", n)
	}
}

// TestLayout: aligned, in order, without overlap, named and shaped as GPT-2's files.
func TestLayout(t *testing.T) {
	for _, tied := range []bool{true, false} {
		for _, bias := range []bool{true, false} {
			c := Config{VocabSize: 7, BlockSize: 5, Layers: 11, Heads: 1, Embed: 3, Tied: tied, Bias: bias}
			end := 0
			var names []string
			for _, p := range c.Params() {
				n := 1
				for _, s := range p.Shape {
					n *= s
				}
				if p.Offset%16 != 0 || p.Offset < end || p.Offset >= end+16 || n != p.Len {
					t.Errorf("%s: offset %d after %d, length %d of shape %v", p.Name, p.Offset, end, p.Len, p.Shape)
				}
				end = p.Offset + p.Len
				names = append(names, p.Name)
			}
			if n := c.FlatLen(); n%16 != 0 || n < end || n >= end+16 {
				t.Errorf("flat length %d after %d", n, end)
			}
			if slices.Contains(names, "lm_head.weight") == tied || slices.Contains(names, "ln_f.bias") != bias || !slices.Contains(names, "h.10.mlp.c_proj.weight") {
				t.Errorf("tied=%v bias=%v: parameters %v", tied, bias, names)
			}
		}
	}
	c := Config{VocabSize: 7, BlockSize: 5, Layers: 1, Heads: 1, Embed: 3, Bias: true}
	var got []string
	for _, p := range c.Params() {
		got = append(got, p.Name)
	}
	want := strings.Fields(`wte.weight wpe.weight h.0.ln_1.weight h.0.ln_1.bias h.0.attn.c_attn.weight h.0.attn.c_attn.bias
		h.0.attn.c_proj.weight h.0.attn.c_proj.bias h.0.ln_2.weight h.0.ln_2.bias h.0.mlp.c_fc.weight h.0.mlp.c_fc.bias
		h.0.mlp.c_proj.weight h.0.mlp.c_proj.bias ln_f.weight ln_f.bias lm_head.weight`)
	if !slices.Equal(got, want) {
		t.Errorf("parameters %v\nwant %v", got, want)
	}
}

// TestValidate: each problem is named, several at once, and none panics.
func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   []string
	}{
		"zero sizes":     {func(c *Config) { *c = Config{} }, []string{"vocabulary size is 0", "block size is 0", "layers is 0", "heads is 0", "channels is 0"}},
		"negative heads": {func(c *Config) { c.Heads = -1 }, []string{"number of heads is -1"}},
		"heads":          {func(c *Config) { c.Heads = 5 }, []string{"12 channels can't be shared by 5 heads"}},
		"dropout 1":      {func(c *Config) { c.ResidDrop = 1 }, []string{"residual dropout is 1"}},
		"dropout NaN":    {func(c *Config) { c.EmbdDrop = math.NaN() }, []string{"embedding dropout is NaN"}},
		"GELU":           {func(c *Config) { c.GELU = 7 }, []string{"GELU 7"}},
		"huge":           {func(c *Config) { c.VocabSize, c.Embed = math.MaxInt32, 1<<20 }, []string{"more than 2^32"}},
		"overflow":       {func(c *Config) { c.VocabSize = math.MaxInt }, []string{"vocabulary size"}},
		"dropout count":  {func(c *Config) { c.BlockSize, c.AttnDrop = 1<<16, 0.1 }, []string{"attention dropout"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := small
			test.change(&c)
			err := c.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q does not say %q in one line", err, want)
				}
			}
		})
	}
	if err := small.Validate(); err != nil {
		t.Error(err)
	}
}

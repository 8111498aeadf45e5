package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

var adamW = OptimizerConfig{Betas: [2]float64{0.9, 0.95}, Eps: 1e-8, WeightDecay: 0.1, GradClip: 1}

// TestDecayClassifiesEveryParameter: written out name by name for both rules.
func TestDecayClassifiesEveryParameter(t *testing.T) {
	linear := []string{"c_attn.weight", "c_proj.weight", "c_fc.weight", "lm_head.weight"}
	for _, tied := range []bool{true, false} {
		for _, rule := range []string{"mingpt", "matrices"} {
			c := small
			c.Tied = tied
			decays, err := decayRule(rule)
			if err != nil {
				t.Fatal(err)
			}
			chosen := map[string]bool{}
			for _, p := range c.Params() {
				want := slices.ContainsFunc(linear, func(s string) bool { return strings.HasSuffix(p.Name, s) })
				if rule == "matrices" && (p.Name == "wte.weight" || p.Name == "wpe.weight") {
					want = true
				}
				if decays(p) != want {
					t.Errorf("%s, tied=%v: %s decays: %v", rule, tied, p.Name, !want)
				}
				chosen[p.Name] = want
			}
			checkSegments(t, c, segments(c.Params(), c.FlatLen(), decays), chosen)
		}
	}
}

// checkSegments wants a tiling of the flat buffer that decays as chosen.
func checkSegments(t *testing.T, c Config, got []segment, chosen map[string]bool) {
	t.Helper()
	end := 0
	for i, s := range got {
		if s.lo != end || i > 0 && got[i-1].decay == s.decay {
			t.Errorf("segment %d is %+v after %d", i, s, end)
		}
		end = s.hi
		for _, p := range c.Params() {
			if p.Offset >= s.lo && p.Offset < s.hi && (chosen[p.Name] != s.decay || p.Offset+p.Len > s.hi) {
				t.Errorf("%s lies in segment %+v", p.Name, s)
			}
		}
	}
	if end != c.FlatLen() {
		t.Errorf("segments end at %d of %d", end, c.FlatLen())
	}
}

// TestStepByHand compares two steps with AdamW written out in float64.
func TestStepByHand(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		g := build(t, small, b, 1)
		opt, err := NewOptimizer(small, b, adamW)
		if err != nil {
			t.Fatal(err)
		}
		const lr, tokens = 0.01, 4
		grads := b.Alloc(small.FlatLen())
		params, m, v := widen(g.Params().Host()), make([]float64, small.FlatLen()), make([]float64, small.FlatLen())
		for step := 1; step <= 2; step++ {
			sum := 0.0
			for _, p := range small.Params() {
				for i := range p.Len {
					x := (float64(mixed(i, step*100))/(1<<32) - 0.5) * float64(step) / 8
					grads.Host()[p.Offset+i] = float32(x)
					sum += x * x / (tokens * tokens)
				}
			}
			want := math.Sqrt(sum)
			norm, err := opt.Step(g.Params(), grads, lr, tokens)
			if err != nil || math.Abs(norm-want) > 1e-6*want {
				t.Fatalf("step %d: norm %v, %v; want %v", step, norm, err, want)
			}
			factor := min(1, 1/(want+1e-6)) / tokens
			for _, p := range small.Params() {
				for i := p.Offset; i < p.Offset+p.Len; i++ {
					byHand(&params[i], &m[i], &v[i], factor*float64(grads.Host()[i]), lr, p.Decay, step)
				}
			}
		}
		for i, want := range params {
			if got := float64(g.Params().Host()[i]); math.Abs(got-want) > 2e-6 {
				t.Fatalf("value %d: %v, want %v", i, got, want)
			}
		}
		checkPadding(t, g)
	})
}

func byHand(p, m, v *float64, g, lr float64, decay bool, step int) {
	if decay {
		*p -= lr * 0.1 * *p
	}
	*m += 0.1 * (g - *m)
	*v += 0.05 * (g*g - *v)
	c1, c2 := 1-math.Pow(0.9, float64(step)), 1-math.Pow(0.95, float64(step))
	*p -= lr * (*m / c1) / (math.Sqrt(*v/c2) + 1e-8)
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// TestNonFiniteGradient: named, and nothing has moved.
func TestNonFiniteGradient(t *testing.T) {
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		for _, poison := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			g := build(t, small, b, 1)
			opt, err := NewOptimizer(small, b, adamW)
			if err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(g.Params().Host())
			grads := b.Alloc(small.FlatLen())
			for _, p := range small.Params() {
				if p.Name == "wte.weight" || p.Name == "h.1.attn.c_proj.weight" || p.Name == "h.0.ln_2.bias" {
					grads.Host()[p.Offset+p.Len-1] = poison
				}
			}
			_, err = opt.Step(g.Params(), grads, 1, 1)
			var nonFinite *NonFiniteError
			if !errors.As(err, &nonFinite) || nonFinite.Param != "h.1.attn.c_proj.weight" {
				t.Errorf("%v: error %v", poison, err)
			}
			m, v := opt.Moments()
			zero := make([]float32, small.FlatLen())
			if !slices.Equal(g.Params().Host(), before) || !slices.Equal(m.Host(), zero) || !slices.Equal(v.Host(), zero) || opt.Steps() != 0 {
				t.Errorf("%v: the step left traces", poison)
			}
		}
	})
}

// TestResumedStepIsTheSame: parameters, moments and the step count are all the
// state that there is.
func TestResumedStepIsTheSame(t *testing.T) {
	b := ref.New()
	x, y := tokensOf(small.BlockSize, small.VocabSize)
	grads := b.Alloc(small.FlatLen())
	step := func(g *GPT, o *Optimizer) {
		_, count := g.LossGrad(x, y, 1, grads, Draw{}, nil)
		if _, err := o.Step(g.Params(), grads, 0.1, count); err != nil {
			t.Fatal(err)
		}
	}
	g, resumed := build(t, small, b, 1), build(t, small, b, 1)
	opt, err := NewOptimizer(small, b, adamW)
	if err != nil {
		t.Fatal(err)
	}
	again, err := NewOptimizer(small, b, adamW)
	if err != nil {
		t.Fatal(err)
	}
	step(g, opt)
	step(g, opt)
	m, v := opt.Moments()
	toM, toV := again.Moments()
	b.Copy(toM, m)
	b.Copy(toV, v)
	b.Copy(resumed.Params(), g.Params())
	again.SetSteps(opt.Steps())
	step(g, opt)
	step(resumed, again)
	if !slices.Equal(g.Params().Host(), resumed.Params().Host()) {
		t.Error("the resumed step differs")
	}
}

func TestOptimizerRejects(t *testing.T) {
	for i, change := range []func(*OptimizerConfig){
		func(c *OptimizerConfig) { c.Betas[1] = 1 },
		func(c *OptimizerConfig) { c.Betas[0] = math.NaN() },
		func(c *OptimizerConfig) { c.Eps = 0 },
		func(c *OptimizerConfig) { c.Eps = 1e-60 },
		func(c *OptimizerConfig) { c.WeightDecay = -1 },
		func(c *OptimizerConfig) { c.GradClip = math.NaN() },
		func(c *OptimizerConfig) { c.Decay = "all" },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := adamW
			change(&c)
			if _, err := NewOptimizer(small, ref.New(), c); err == nil {
				t.Errorf("%+v passes", c)
			}
		})
	}
	opt, err := NewOptimizer(small, ref.New(), adamW)
	if err != nil {
		t.Fatal(err)
	}
	grads := ref.New().Alloc(small.FlatLen())
	if _, err := opt.Step(grads, grads, 1, 0); err == nil {
		t.Error("a step over no targets passes")
	}
}

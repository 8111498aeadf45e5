package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ddp/model/compute"
)

// fixture is testdata/parity.json: what PyTorch computed; see parity.py.
type fixture struct {
	Batch, Block, Vocabulary, Embed, Heads, Layers int
	Betas                                          [2]float64
	Eps, Clip, LR                                  float64
	WeightDecay                                    float64 `json:"weight_decay"`
	MinLR                                          float64 `json:"min_lr"`
	Warmup, Total                                  int
	Cases                                          []parityCase
}

type parityCase struct {
	Name                  string
	Tied, Bias            bool
	GELU, Decay, Schedule string
	Losses, Norms, Rates  []float64
}

func readFixture(t *testing.T) fixture {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "parity.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Cases) != 8 {
		t.Fatalf("%d cases, want 8", len(f.Cases))
	}
	return f
}

func (f fixture) config(c parityCase) Config {
	gelu := map[string]compute.GELU{"tanh": compute.GELUTanh, "exact": compute.GELUExact}[c.GELU]
	return Config{VocabSize: f.Vocabulary, BlockSize: f.Block, Layers: f.Layers, Heads: f.Heads, Embed: f.Embed,
		Tied: c.Tied, Bias: c.Bias, GELU: gelu}
}

// values are CASE.f32.
func (c parityCase) values(t *testing.T) []float32 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", c.Name+".f32"))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(raw)/4)
	if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestParity holds logits, every gradient and ten training steps against PyTorch.
func TestParity(t *testing.T) {
	f := readFixture(t)
	eachBackend(t, func(t *testing.T, b compute.Backend) {
		for _, c := range f.Cases {
			t.Run(c.Name, func(t *testing.T) {
				g := build(t, f.config(c), b, f.Batch)
				compareLogitsAndGradients(t, f, g, b, c.values(t))
				compareTraining(t, f, c, g, b)
			})
		}
	})
}

func compareLogitsAndGradients(t *testing.T, f fixture, g *GPT, b compute.Backend, want []float32) {
	t.Helper()
	x, y := tokensOf(f.Batch*f.Block, f.Vocabulary)
	logits := g.LogitsAll(x, f.Batch)
	compare(t, "logits", logits, want[:len(logits)])
	want = want[len(logits):]
	grads := b.Alloc(g.cfg.FlatLen())
	g.LossGrad(x, y, f.Batch, grads, Draw{}, nil)
	for _, p := range g.cfg.Params() {
		compare(t, p.Name, grads.Host()[p.Offset:p.Offset+p.Len], want[:p.Len])
		want = want[p.Len:]
	}
	if len(want) != 0 {
		t.Errorf("%d values of the fixture are left over", len(want))
	}
}

// compare wants got within 1e-4 of the largest value wanted.
func compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	most, worst := 0.0, 0.0
	for i := range want {
		most = max(most, math.Abs(float64(want[i])))
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) {
			worst = d
		}
	}
	if !(worst <= 1e-4*most) || most == 0 {
		t.Errorf("%s: off by %.3g of at most %.3g", what, worst, most)
	}
}

func compareTraining(t *testing.T, f fixture, c parityCase, g *GPT, b compute.Backend) {
	t.Helper()
	opt, err := NewOptimizer(g.cfg, b, OptimizerConfig{Betas: f.Betas, Eps: f.Eps, WeightDecay: f.WeightDecay,
		Decay: c.Decay, GradClip: f.Clip})
	if err != nil {
		t.Fatal(err)
	}
	schedule := Schedule{Kind: c.Schedule, LR: f.LR, MinLR: f.MinLR, Warmup: f.Warmup, Total: f.Total}
	x, y := tokensOf(f.Batch*f.Block, f.Vocabulary)
	grads := b.Alloc(g.cfg.FlatLen())
	for step := range c.Losses {
		sum, count := g.LossGrad(x, y, f.Batch, grads, Draw{}, nil)
		norm, err := opt.Step(g.Params(), grads, schedule.At(step), count)
		if err != nil {
			t.Fatal(err)
		}
		near(t, step, "loss", sum/float64(count), c.Losses[step], 1e-4)
		near(t, step, "norm", norm, c.Norms[step], 1e-3)
		near(t, step, "learning rate", schedule.At(step), c.Rates[step], 1e-12)
	}
}

func near(t *testing.T, step int, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("step %d: %s %.9g, PyTorch has %.9g", step, what, got, want)
	}
}

package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ddp/model/compute/ref"
)

func initialised(t *testing.T, c Config, seed uint64) *GPT {
	t.Helper()
	g, err := New(c, ref.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	g.Init(seed)
	return g
}

// TestInitStatistics: mean, deviation and tails of each kind of parameter.
func TestInitStatistics(t *testing.T) {
	c := Config{VocabSize: 997, BlockSize: 64, Layers: 8, Heads: 4, Embed: 64, Bias: true}
	g := initialised(t, c, 1337)
	for _, s := range g.weights.slots {
		x, want := s.view.Host(), 0.02
		switch {
		case len(s.Shape) == 1:
			constant := float32(1)
			if strings.HasSuffix(s.Name, ".bias") {
				constant = 0
			}
			if slices.ContainsFunc(x, func(v float32) bool { return v != constant }) {
				t.Errorf("%s is not all %v", s.Name, constant)
			}
			continue
		case strings.HasSuffix(s.Name, ".c_proj.weight"):
			want = 0.02 / 4 // sqrt(2·8)
		}
		mean, square, within := moments(x, want)
		n := float64(len(x))
		if math.Abs(mean) > 5*want/math.Sqrt(n) || math.Abs(square/want-1) > 5/math.Sqrt(2*n) || math.Abs(within-0.6827) > 5*0.4655/math.Sqrt(n) {
			t.Errorf("%s: mean %.2g, deviation %.4g (want %.4g), %.4f within one", s.Name, mean, square, want, within)
		}
	}
	checkPadding(t, g)
}

// moments are mean, root of the mean square, and the share within one deviation.
func moments(x []float32, std float64) (mean, root, within float64) {
	for _, v := range x {
		mean += float64(v)
		root += float64(v) * float64(v)
		if math.Abs(float64(v)) <= std {
			within++
		}
	}
	n := float64(len(x))
	return mean / n, math.Sqrt(root / n), within / n
}

func checkPadding(t *testing.T, g *GPT) {
	t.Helper()
	rest := slices.Clone(g.Params().Host())
	for _, p := range g.cfg.Params() {
		clear(rest[p.Offset : p.Offset+p.Len])
	}
	if slices.ContainsFunc(rest, func(v float32) bool { return v != 0 }) {
		t.Error("padding is not zero")
	}
}

// TestInitIsAFunctionOfSeedNameAndIndex: the same weights whatever else the
// model has, other ones for another seed or name.
func TestInitIsAFunctionOfSeedNameAndIndex(t *testing.T) {
	c := small
	g := initialised(t, c, 1)
	plain := c
	plain.Bias, plain.Tied, plain.AttnDrop, plain.VocabSize = false, false, 0.1, c.VocabSize+9
	other := initialised(t, plain, 1)
	seen := map[float32]string{}
	for _, s := range g.weights.slots {
		if s.role == bias || s.role == scale {
			continue
		}
		i := slices.IndexFunc(other.weights.slots, func(o slot) bool { return o.Name == s.Name })
		if !slices.Equal(s.view.Host(), other.weights.slots[i].view.Host()[:s.Len]) {
			t.Errorf("%s differs in a model with other options", s.Name)
		}
		if before, ok := seen[s.view.Host()[0]]; ok {
			t.Errorf("%s starts like %s", s.Name, before)
		}
		seen[s.view.Host()[0]] = s.Name
	}
	if slices.Equal(initialised(t, c, 1<<32+1).Params().Host(), g.Params().Host()) {
		t.Error("the high word of the seed has no effect")
	}
}

// TestNormalsInPieces: a range does not depend on where filling began.
func TestNormalsInPieces(t *testing.T) {
	whole, pieces := make([]float32, 103), make([]float32, 103)
	normals(whole, 0, "x", 9, 1)
	normals(pieces[:40], 0, "x", 9, 1)
	normals(pieces[40:], 40, "x", 9, 1)
	if !slices.Equal(whole, pieces) {
		t.Error("pieces differ from the whole")
	}
}

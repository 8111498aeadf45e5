package model

import (
	"math"
	"testing"
)

// TestScheduleShape: what holds for every kind; TestParity has nanoGPT's values.
func TestScheduleShape(t *testing.T) {
	for _, kind := range []string{"", "constant", "linear", "cosine"} {
		for _, s := range []Schedule{
			{Kind: kind, LR: 1, MinLR: 0.1, Warmup: 10, Total: 100},
			{Kind: kind, LR: 1, Total: 100},
			{Kind: kind, LR: 1, Warmup: 5, Total: 5},
			{Kind: kind, LR: 1},
		} {
			if err := s.Validate(); err != nil {
				t.Errorf("%+v: %v", s, err)
			}
			if s.At(0) <= 0 {
				t.Errorf("%+v: step 0 learns nothing", s)
			}
			if s.At(s.Warmup) != s.LR {
				t.Errorf("%+v: %v after the warm-up", s, s.At(s.Warmup))
			}
			for step := range 120 {
				up := s.At(step+1) > s.At(step)
				if up != (step < s.Warmup) && s.At(step+1) != s.At(step) {
					t.Errorf("%+v: %v then %v at step %d", s, s.At(step), s.At(step+1), step)
				}
			}
			if end := s.At(1000); kind == "linear" || kind == "cosine" {
				if end != s.MinLR {
					t.Errorf("%+v: ends at %v", s, end)
				}
			} else if end != s.LR {
				t.Errorf("%+v: ends at %v", s, end)
			}
		}
	}
}

func TestScheduleMiddle(t *testing.T) {
	for kind, want := range map[string]float64{"linear": 0.55, "cosine": 0.55} {
		if got := (Schedule{Kind: kind, LR: 1, MinLR: 0.1, Warmup: 10, Total: 100}).At(55); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v half-way, want %v", kind, got, want)
		}
	}
	quarter := (Schedule{Kind: "cosine", LR: 1, Warmup: 10, Total: 110}).At(35)
	if want := 0.5 * (1 + math.Sqrt2/2); math.Abs(quarter-want) > 1e-12 {
		t.Errorf("cosine: %v at a quarter, want %v", quarter, want)
	}
}

func TestScheduleRejects(t *testing.T) {
	for _, s := range []Schedule{
		{Kind: "wsd", LR: 1}, {LR: -1}, {LR: math.NaN()}, {LR: 1, MinLR: math.Inf(1)},
		{LR: 1, Warmup: -1}, {Kind: "cosine", LR: 1, Warmup: 10, Total: 9},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v passes", s)
		}
	}
}

package model

import (
	"fmt"
	"math"
)

// Schedule is the learning rate as a function of the step, as nanoGPT has it.
type Schedule struct {
	Kind   string  // "constant" (or ""), "linear" or "cosine": the way from LR to MinLR after the warm-up
	LR     float64 // at the end of the warm-up
	MinLR  float64 // from step Total on; constant schedules don't use it
	Warmup int     // steps
	Total  int     // the step that reaches MinLR, counted from the run's start; at least Warmup
}

// Validate reports a schedule that could not be meant.
func (s Schedule) Validate() error {
	switch s.Kind {
	case "", "constant":
	case "linear", "cosine":
		if s.Total < s.Warmup {
			return fmt.Errorf("schedule: decay ends at step %d, within the warm-up of %d steps", s.Total, s.Warmup)
		}
	default:
		return fmt.Errorf("schedule: unknown kind %q, want constant, linear or cosine", s.Kind)
	}
	for _, lr := range []float64{s.LR, s.MinLR} {
		if !(lr >= 0) || math.IsInf(lr, 0) {
			return fmt.Errorf("schedule: learning rate %v is not a number of at least 0", lr)
		}
	}
	if s.Warmup < 0 {
		return fmt.Errorf("schedule: warm-up of %d steps, want at least 0", s.Warmup)
	}
	return nil
}

// At is the learning rate of step, counted from 0. It rises in equal parts
// during the warm-up without ever being 0, so the first step already learns.
func (s Schedule) At(step int) float64 {
	switch {
	case step < s.Warmup:
		return s.LR * float64(step+1) / float64(s.Warmup+1)
	case step == s.Warmup || s.Kind == "" || s.Kind == "constant":
		return s.LR
	case step >= s.Total:
		return s.MinLR
	}
	ratio := float64(step-s.Warmup) / float64(s.Total-s.Warmup)
	if s.Kind == "linear" {
		return s.LR + (s.MinLR-s.LR)*ratio
	}
	return s.MinLR + 0.5*(1+math.Cos(math.Pi*ratio))*(s.LR-s.MinLR)
}

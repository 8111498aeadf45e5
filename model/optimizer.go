package model

import (
	"fmt"
	"math"

	"ddp/model/compute"
)

// OptimizerConfig are AdamW's constants (Loshchilov and Hutter 2019).
type OptimizerConfig struct {
	Betas       [2]float64 // decay of the two moments, in [0,1)
	Eps         float64    // above 0
	WeightDecay float64    // of the parameters that Decay chooses; 0: none
	Decay       string     // "mingpt" (or ""): weights of Linear layers; "matrices": all of 2 or more dimensions
	GradClip    float64    // largest norm of the mean gradient; 0: any
}

// validate reports the first constant out of its range.
func (c OptimizerConfig) validate() error {
	for i, beta := range c.Betas {
		if !(beta >= 0 && beta < 1) {
			return fmt.Errorf("optimizer: beta%d is %v, want at least 0 and less than 1", i+1, beta)
		}
	}
	if !(c.Eps > 0) || float32(c.Eps) == 0 {
		return fmt.Errorf("optimizer: eps is %v, want a float32 above 0", c.Eps)
	}
	if !(c.WeightDecay >= 0) {
		return fmt.Errorf("optimizer: weight decay is %v, want at least 0", c.WeightDecay)
	}
	if !(c.GradClip >= 0) {
		return fmt.Errorf("optimizer: gradient clip is %v, want at least 0", c.GradClip)
	}
	_, err := decayRule(c.Decay)
	return err
}

// decayRule says which parameters decay. Every parameter either does or doesn't.
//
// mingpt goes by modules: weights of Linear layers decay, an untied lm_head
// among them; embeddings, biases and LayerNorms don't, and neither does a tied
// head, which is the embedding's tensor. matrices is nanoGPT's rule, under
// which wte and wpe decay too.
func decayRule(name string) (func(Param) bool, error) {
	switch name {
	case "", "mingpt":
		return func(p Param) bool { return p.Decay }, nil
	case "matrices":
		return func(p Param) bool { return len(p.Shape) >= 2 }, nil
	}
	return nil, fmt.Errorf("optimizer: unknown decay rule %q, want mingpt or matrices", name)
}

// Optimizer is AdamW with clipping of the gradient's norm. It owns two moments
// of the parameters' layout and is used by one goroutine at a time.
type Optimizer struct {
	cfg      OptimizerConfig
	backend  compute.Backend
	params   []Param
	segments []segment
	m, v     compute.Buffer
	steps    int
}

// segment is a flat range in which all parameters decay alike.
type segment struct {
	lo, hi int
	decay  bool
}

// NewOptimizer makes an optimizer for models of shape c, with zero moments.
func NewOptimizer(c Config, b compute.Backend, oc OptimizerConfig) (*Optimizer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := oc.validate(); err != nil {
		return nil, err
	}
	decays, err := decayRule(oc.Decay)
	if err != nil {
		return nil, err
	}
	params, n := c.Params(), c.FlatLen()
	return &Optimizer{cfg: oc, backend: b, params: params, segments: segments(params, n, decays),
		m: b.Alloc(n), v: b.Alloc(n)}, nil
}

// segments joins neighbours that decay alike, padding included: where gradient
// and moments are zero, a zero parameter stays zero.
func segments(params []Param, flatLen int, decays func(Param) bool) []segment {
	var out []segment
	for i, p := range params {
		hi := flatLen
		if i+1 < len(params) {
			hi = params[i+1].Offset
		}
		if d := decays(p); len(out) > 0 && out[len(out)-1].decay == d {
			out[len(out)-1].hi = hi
		} else {
			out = append(out, segment{p.Offset, hi, d})
		}
	}
	return out
}

// Step takes one AdamW step over params. grads is the gradient of the sum of
// tokens losses; the step follows their mean, clipped as PyTorch's
// clip_grad_norm_ does. norm is the mean gradient's norm before the clip.
//
// A gradient that is not finite is a *NonFiniteError; parameters, moments and
// the step count are then as before. grads is not changed.
func (o *Optimizer) Step(params, grads compute.Buffer, lr float64, tokens int) (norm float64, err error) {
	if tokens < 1 {
		return 0, fmt.Errorf("optimizer: a gradient of %d targets, want at least 1", tokens)
	}
	norm = math.Sqrt(o.backend.SumSquares(grads)) / float64(tokens)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, &NonFiniteError{Param: o.firstNonFinite(grads), Norm: norm}
	}
	o.steps++
	a := compute.AdamW{
		LR: float32(lr), Beta1: float32(o.cfg.Betas[0]), Beta2: float32(o.cfg.Betas[1]), Eps: float32(o.cfg.Eps),
		GradScale:   float32(o.clip(norm) / float64(tokens)),
		Correction1: float32(1 - math.Pow(o.cfg.Betas[0], float64(o.steps))),
		Correction2: float32(1 - math.Pow(o.cfg.Betas[1], float64(o.steps))),
	}
	for _, s := range o.segments {
		a.Decay = 0
		if s.decay {
			a.Decay = float32(o.cfg.WeightDecay)
		}
		o.backend.AdamW(params.Slice(s.lo, s.hi), grads.Slice(s.lo, s.hi), o.m.Slice(s.lo, s.hi), o.v.Slice(s.lo, s.hi), a)
	}
	return norm, nil
}

// clip is the factor that PyTorch's clip_grad_norm_ puts to a gradient.
func (o *Optimizer) clip(norm float64) float64 {
	if o.cfg.GradClip == 0 {
		return 1
	}
	return min(1, o.cfg.GradClip/(norm+1e-6))
}

// firstNonFinite names the parameter that the backward pass reached first whose
// gradient is not finite: what came after may have caught it from there.
func (o *Optimizer) firstNonFinite(grads compute.Buffer) string {
	for i := len(o.params) - 1; i >= 0; i-- {
		p := o.params[i]
		if sum := o.backend.SumSquares(grads.Slice(p.Offset, p.Offset+p.Len)); math.IsNaN(sum) || math.IsInf(sum, 0) {
			return p.Name
		}
	}
	return "the gradient's padding"
}

// NonFiniteError is a gradient with a NaN or an infinity in it.
type NonFiniteError struct {
	Param string  // the first such parameter on the backward pass's way
	Norm  float64 // NaN or +Inf
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("the gradient's norm is %v: not finite first in %s on the way back", e.Norm, e.Param)
}

// Moments are AdamW's first and second moments, flat, for reading and for
// loading a snapshot into. Their padding must stay zero.
func (o *Optimizer) Moments() (m, v compute.Buffer) { return o.m, o.v }

// Steps is the number of steps taken, on which the moments' correction depends.
func (o *Optimizer) Steps() int { return o.steps }

// SetSteps continues from a snapshot taken after n steps.
func (o *Optimizer) SetSteps(n int) { o.steps = n }

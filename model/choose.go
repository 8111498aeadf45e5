package model

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"ddp/model/compute"
)

// choose picks the i-th token of a text from its logits[V].
func (o GenerateOptions) choose(logits []float32, i int) (int32, error) {
	best := argmax(logits)
	if x := float64(logits[best]); math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errors.New("the model's scores are not finite")
	}
	if o.Temperature == 0 {
		return best, nil
	}
	candidates := o.candidates(logits, logits[best])
	u := compute.Philox4x32([4]uint32{uint32(i), 0, 0, streamGenerate}, key(o.Seed))
	return draw(candidates, float64(uint64(u[0])<<32|uint64(u[1]))/(1<<64)), nil
}

// argmax is the lowest index of the largest value; NaN only if all are.
func argmax(x []float32) int32 {
	best := 0
	for i, value := range x {
		if value > x[best] || x[best] != x[best] {
			best = i
		}
	}
	return int32(best)
}

// candidate is a token with its probability, up to a common factor.
type candidate struct {
	token  int32
	weight float64
}

// candidates are the tokens that may be drawn: temperature first, then the K
// likeliest, then of these the fewest that reach the share P. The likeliest
// come first, of equals the lowest; unless both are off, when nothing is sorted.
func (o GenerateOptions) candidates(logits []float32, top float32) []candidate {
	all := make([]candidate, len(logits))
	for i, x := range logits {
		all[i] = candidate{int32(i), math.Exp(float64(x-top) / o.Temperature)}
	}
	byK, byP := o.TopK > 0 && o.TopK < len(all), o.TopP > 0 && o.TopP < 1
	if !byK && !byP {
		return all
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
	if byK {
		all = all[:o.TopK]
	}
	if byP {
		all = all[:nucleus(all, o.TopP)]
	}
	return all
}

// nucleus is the number of leading candidates that make up share p of all.
func nucleus(sorted []candidate, p float64) int {
	rest := p * total(sorted)
	for i, c := range sorted {
		if rest -= c.weight; rest <= 0 {
			return i + 1
		}
	}
	return len(sorted)
}

func total(candidates []candidate) float64 {
	sum := 0.0
	for _, c := range candidates {
		sum += c.weight
	}
	return sum
}

// draw picks the candidate at which the running sum passes share u of the
// whole, u in [0,1).
func draw(candidates []candidate, u float64) int32 {
	rest := u * total(candidates)
	last := candidates[0].token
	for _, c := range candidates {
		if c.weight == 0 {
			continue // never drawn, even where rounding leaves a rest
		}
		last = c.token
		if rest -= c.weight; rest < 0 {
			break
		}
	}
	return last
}

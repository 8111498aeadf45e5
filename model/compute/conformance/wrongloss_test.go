package conformance

import (
	"math"
	"slices"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// loses replaces CrossEntropy.
type loses struct {
	compute.Backend
	f func(loss, logits compute.Buffer, targets []int32, m, v int, grad bool)
}

func (w loses) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	w.f(loss, logits, targets, m, v, grad)
}

func lossMistakes() []mistake {
	var list []mistake
	for name, f := range map[string]func(loss, logits compute.Buffer, targets []int32, m, v int, grad bool){
		"exponentials overflow":         naive,
		"masked rows counted":           unmasked,
		"masked rows keep their logits": maskedKept,
		"gradient asked or not":         alwaysGradient,
		"a target too far":              nextTarget,
	} {
		list = append(list, mistake{name, loses{ref.New(), f}, []string{"CrossEntropy"}})
	}
	return list
}

// naive does not subtract the largest logit.
func naive(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	for r, target := range targets {
		row, sum := logits.Host()[r*v:(r+1)*v], float32(0)
		for _, x := range row {
			sum += float32(math.Exp(float64(x)))
		}
		loss.Host()[r] = 0
		if target >= 0 {
			loss.Host()[r] = float32(math.Log(float64(sum))) - row[target]
		}
		for i, x := range row {
			if !grad {
				break
			}
			row[i] = float32(math.Exp(float64(x))) / sum
			if target < 0 {
				row[i] = 0
			} else if i == int(target) {
				row[i]--
			}
		}
	}
}

// unmasked takes a masked target for symbol 0.
func unmasked(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	targets = slices.Clone(targets)
	for i := range targets {
		targets[i] = max(0, targets[i])
	}
	ref.New().CrossEntropy(loss, logits, targets, m, v, grad)
}

// maskedKept leaves a masked row's logits as if they were its gradient.
func maskedKept(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	before := slices.Clone(logits.Host())
	ref.New().CrossEntropy(loss, logits, targets, m, v, grad)
	for r, target := range targets {
		if target < 0 {
			copy(logits.Host()[r*v:(r+1)*v], before[r*v:])
		}
	}
}

func alwaysGradient(loss, logits compute.Buffer, targets []int32, m, v int, _ bool) {
	ref.New().CrossEntropy(loss, logits, targets, m, v, true)
}

func nextTarget(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	targets = slices.Clone(targets)
	for i, target := range targets {
		if target >= 0 {
			targets[i] = (target + 1) % int32(v)
		}
	}
	ref.New().CrossEntropy(loss, logits, targets, m, v, grad)
}

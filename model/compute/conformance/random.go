package conformance

import (
	"math"

	"ddp/model/compute"
)

var nan = float32(math.NaN())

// words are four random words, a function of stream, kind and place alone.
func words(stream, kind, i int) [4]uint32 {
	return compute.Philox4x32([4]uint32{uint32(i), uint32(stream), uint32(kind), 0}, [2]uint32{7, 11})
}

// normal gives values with mean 0 and the given deviation, close to a normal
// distribution: the sum of four uniform ones, which reaches to 3.46 deviations.
func normal(stream int, deviation float64) func(int) float32 {
	unit := deviation * math.Sqrt(3) / (1 << 32) // a uniform value's variance is 1/12
	return func(i int) float32 {
		w := words(stream, 0, i)
		sum := uint64(w[0]) + uint64(w[1]) + uint64(w[2]) + uint64(w[3])
		return float32(unit * (float64(sum) - 1<<33))
	}
}

// positive gives values between 0 and 1.
func positive(stream int) func(int) float32 {
	return func(i int) float32 { return float32(words(stream, 1, i)[0]>>8)/(1<<24) + 1e-6 }
}

// signs gives size or -size.
func signs(stream int, size float32) func(int) float32 {
	return func(i int) float32 {
		if words(stream, 3, i)[0]&1 == 0 {
			return -size
		}
		return size
	}
}

// decades gives values of either sign from 1e-4 to 1e4, all sizes alike.
func decades(stream int) func(int) float32 {
	return func(i int) float32 {
		w := words(stream, 4, i)
		size := math.Pow(10, 8*float64(w[0])/(1<<32)-4)
		return float32(math.Copysign(size, float64(w[1])-1<<31))
	}
}

// zero gives zeroes.
func zero(int) float32 { return 0 }

// masking says which targets are masked.
type masking string

const (
	nothing    masking = "nothing"
	aThird     masking = "a third"
	everything masking = "everything"
)

// symbols are n tokens below v, or -1 where masked.
func symbols(stream, n, v int, mask masking) []int32 {
	out := make([]int32, n)
	for i := range out {
		w := words(stream, 2, i)
		out[i] = int32(w[0] % uint32(v))
		if mask == everything || mask == aThird && w[1]%3 == 0 {
			out[i] = -1
		}
	}
	return out
}

// probabilities are those of dropout that every operation that drops is run with.
var probabilities = []float32{0, 0.3}

// draw is a dropout with everything in its counter that can differ, or none.
func draw(p float32, rowsPer int) compute.Dropout {
	if p == 0 {
		return compute.Dropout{} // "draws nothing": the rest may be unset
	}
	return compute.Dropout{P: p, Seed: 0x0123456789abcdef, Step: 17, FirstSample: 5, Layer: 3, Site: compute.SiteMLPProjection, RowsPer: rowsPer}
}

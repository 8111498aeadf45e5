package conformance

import "math"

// epsilon is float32's rounding unit.
const epsilon = 1.0 / (1 << 24)

// dot is the tolerance of a sum of k products: rounding errors that add up like
// a random walk, with room for the spread.
func dot(k int) float64 { return (8 + 4*math.Sqrt(float64(k))) * epsilon }

// deviation is the largest relative error of got. Where want is near 0 the
// output's root mean square stands in for it, or least where that is larger.
func deviation(got, want []float32, least float64) float64 {
	sum := 0.0
	for _, w := range want {
		sum += float64(w) * float64(w)
	}
	scale := max(least, math.Sqrt(sum/float64(max(1, len(want)))))
	worst := 0.0
	for i := range want {
		worst = worse(worst, relative(float64(got[i]), float64(want[i]), scale))
	}
	return worst
}

// relative is the error as a share of |want| + scale; without either, infinite.
func relative(got, want, scale float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / (math.Abs(want) + scale)
}

// worse is the larger error; NaN is the worst.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return math.Max(a, b)
}

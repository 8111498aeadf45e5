package conformance

import (
	"math"

	"ddp/model/compute"
)

// normal gives values of a normal distribution with the given deviation, each a
// function of its stream and place alone.
func normal(stream int, deviation float64) func(int) float32 {
	return func(i int) float32 {
		w := compute.Philox4x32([4]uint32{uint32(i), uint32(stream), 0, 0}, [2]uint32{7, 11})
		u, v := (float64(w[0])+0.5)/(1<<32), float64(w[1])/(1<<32)
		return float32(deviation * math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v))
	}
}

// positive gives values between 0 and 1.
func positive(stream int) func(int) float32 {
	return func(i int) float32 {
		w := compute.Philox4x32([4]uint32{uint32(i), uint32(stream), 1, 0}, [2]uint32{7, 11})
		return float32(w[0]>>8)/(1<<24) + 1e-6
	}
}

// symbols are n tokens below v; with masked set about a third are -1.
func symbols(stream, n, v int, masked bool) []int32 {
	out := make([]int32, n)
	for i := range out {
		w := compute.Philox4x32([4]uint32{uint32(i), uint32(stream), 2, 0}, [2]uint32{7, 11})
		out[i] = int32(w[0] % uint32(v))
		if masked && w[1]%3 == 0 {
			out[i] = -1
		}
	}
	return out
}

// draw is a dropout with everything in its counter that can differ.
func draw(p float32, rowsPer int) compute.Dropout {
	return compute.Dropout{P: p, Seed: 0x0123456789abcdef, Step: 17, FirstSample: 5, Layer: 3, Site: compute.SiteMLPProjection, RowsPer: rowsPer}
}

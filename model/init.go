package model

import (
	"hash/fnv"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"ddp/model/compute"
)

// initStd is GPT-2's standard deviation of new weights.
const initStd = 0.02

// initSpan is the number of values that a goroutine of Init fills at a time.
const initSpan = 1 << 16

// Streams tell apart what this package draws random numbers for: the last word
// of Philox's counter.
const (
	streamInit     = 0x696e6974
	streamGenerate = 0x67656e65
)

// key is a seed as Philox takes it, the low word first.
func key(seed uint64) [2]uint32 { return [2]uint32{uint32(seed), uint32(seed >> 32)} }

// Init sets all parameters as minGPT does: weights normal with standard
// deviation 0.02, those that write to the residual stream 0.02/sqrt(2L),
// biases 0, LayerNorm weights 1. Each value is a function of the seed, the
// parameter's name and its index alone, so neither other options of the model
// nor the number of goroutines change it.
func (g *GPT) Init(seed uint64) {
	type task struct {
		slot   slot
		lo, hi int
	}
	var tasks []task
	for _, s := range g.weights.slots {
		for lo := 0; lo < s.Len; lo += initSpan {
			tasks = append(tasks, task{s, lo, min(lo+initSpan, s.Len)})
		}
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
				t := tasks[i]
				initRange(t.slot.view.Host()[t.lo:t.hi], t.lo, t.slot, seed, g.cfg.Layers)
			}
		})
	}
	workers.Wait()
}

// initRange sets dst, the values of s from index lo, a multiple of 4.
func initRange(dst []float32, lo int, s slot, seed uint64, layers int) {
	switch s.role {
	case scale:
		fill(dst, 1)
	case bias:
		fill(dst, 0)
	case projection:
		normals(dst, lo, s.Name, seed, initStd/math.Sqrt(2*float64(layers)))
	default:
		normals(dst, lo, s.Name, seed, initStd)
	}
}

func fill(dst []float32, value float32) {
	for i := range dst {
		dst[i] = value
	}
}

// normals sets dst to values lo.. of the normal stream called name: the method
// of Box and Muller (1958) on the words of Philox, in float64. A 32-bit word
// reaches 6.6 standard deviations.
func normals(dst []float32, lo int, name string, seed uint64, std float64) {
	h := fnv.New64a()
	h.Write([]byte(name))
	id := h.Sum64()
	for i := 0; i < len(dst); i += 4 {
		u := compute.Philox4x32([4]uint32{uint32((lo + i) / 4), uint32(id), uint32(id >> 32), streamInit}, key(seed))
		var z [4]float64
		z[0], z[1] = boxMuller(u[0], u[1])
		z[2], z[3] = boxMuller(u[2], u[3])
		for j, x := range z[:min(4, len(dst)-i)] {
			dst[i+j] = float32(std * x)
		}
	}
}

// boxMuller turns two uniform words into two independent standard normals.
func boxMuller(a, b uint32) (float64, float64) {
	r := math.Sqrt(-2 * math.Log((float64(a)+0.5)/(1<<32)))
	sin, cos := math.Sincos(2 * math.Pi * (float64(b) + 0.5) / (1 << 32))
	return r * cos, r * sin
}

package model

import (
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/cpu"
	"ddp/model/compute/ref"
)

// eachBackend runs a test on the reference and on all that this machine has.
func eachBackend(t *testing.T, run func(t *testing.T, b compute.Backend)) {
	t.Helper()
	t.Run("ref", func(t *testing.T) { run(t, ref.New()) })
	for _, isa := range cpu.ISAs() {
		t.Run(isa, func(t *testing.T) { run(t, openCPU(t, isa, 2)) })
	}
}

// openCPU opens the cpu back end until the test ends; isa "" is the best.
func openCPU(t *testing.T, isa string, threads int) compute.Backend {
	t.Helper()
	b, err := cpu.New(cpu.Options{ISA: isa, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// small is a model with an odd vocabulary whose dimensions all differ.
var small = Config{VocabSize: 11, BlockSize: 7, Layers: 2, Heads: 2, Embed: 12, Tied: true, Bias: true}

// build makes a model with parameters far enough from zero that all of it matters.
func build(t *testing.T, c Config, b compute.Backend, maxBatch int) *GPT {
	t.Helper()
	g, err := New(c, b, maxBatch)
	if err != nil {
		t.Fatal(err)
	}
	setWeights(g)
	return g
}

// setWeights gives each parameter values that parity.py computes too.
func setWeights(g *GPT) {
	for stream, p := range g.cfg.Params() {
		dst := g.Params().Host()[p.Offset : p.Offset+p.Len]
		for i := range dst {
			value := (float64(mixed(i, stream))/(1<<32) - 0.5) / 2
			if len(p.Shape) == 1 && strings.HasSuffix(p.Name, "weight") {
				value++
			}
			dst[i] = float32(value)
		}
	}
}

// mixed is parity.py's hash of an index.
func mixed(i, stream int) uint32 {
	h := uint32(i)*2654435761 + uint32(stream+1)*2246822519
	h ^= h >> 16
	h *= 0x45D9F3B
	return h ^ h>>16
}

// tokensOf are n tokens and targets, a fifth of the targets masked, as in parity.py.
func tokensOf(n, vocab int) (x, y []int32) {
	for i := range n {
		x = append(x, int32(mixed(i, 1000)%uint32(vocab)))
		target := int32(mixed(i, 1002) % uint32(vocab))
		if mixed(i, 1001)%5 == 0 {
			target = -1
		}
		y = append(y, target)
	}
	return x, y
}

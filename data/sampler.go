package data

import (
	"fmt"
	"math/bits"
)

// Sampler is the order in which a run reads n training windows: a fresh
// permutation each epoch, computed and never stored. It has no state, so any
// rank can ask for any position, in any order, and resuming needs nothing but
// the step. The zero Sampler is not usable.
type Sampler struct {
	n    int
	seed uint64
}

// NewSampler orders n >= 1 windows; it panics when n is smaller, which no
// Dataset's TrainLen is.
func NewSampler(n int, seed uint64) Sampler {
	if n < 1 {
		panic(fmt.Sprintf("data: a sampler of %d windows", n))
	}
	return Sampler{n: n, seed: seed}
}

// Index says which window the position reads: index is in [0, n), and over one
// epoch's n positions each index comes exactly once. With batches of B, the
// position of slot s in step k is k*B + s; it must not be negative.
func (s Sampler) Index(position int64) (epoch int, index int) {
	epoch = int(position / int64(s.n))
	p := newPermutation(uint64(s.n), derive(s.seed, uint64(epoch)))
	return epoch, int(p.at(uint64(position % int64(s.n))))
}

// Steps is the number of steps of batch windows that read every window at
// least epochs times, the last step reaching into the next epoch if need be.
func (s Sampler) Steps(epochs, batch int) int64 {
	total := int64(epochs) * int64(s.n)
	return (total + int64(batch) - 1) / int64(batch)
}

// permutation is a keyed bijection of [0, n): a balanced Feistel network over
// the next power of four (Luby and Rackoff 1988), walked along its cycle until
// it lands inside (Black and Rogaway, CT-RSA 2002).
type permutation struct {
	n    uint64
	half uint // bits of each half
	keys [feistelRounds]uint64
}

// Small domains have little to mix: only with more rounds than the four of the
// theory, and halves of three bits at least, do the orders of a handful of
// windows come equally often (see TestSmallOrdersAreUniform).
const (
	feistelRounds = 8
	minHalf       = 3
)

func newPermutation(n, key uint64) permutation {
	half := max(uint(bits.Len64(n-1)+1)/2, minHalf)
	p := permutation{n: n, half: half}
	keys := stream{state: key}
	for r := range p.keys {
		p.keys[r] = keys.next()
	}
	return p
}

// at is the image of x < n.
func (p *permutation) at(x uint64) uint64 {
	for {
		x = p.network(x)
		if x < p.n {
			return x
		}
	}
}

func (p *permutation) network(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := x>>p.half, x&mask
	for _, key := range p.keys {
		left, right = right, left^(mix64(key+right*golden)&mask)
	}
	return left<<p.half | right
}

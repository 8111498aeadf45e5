package spmd

import (
	"sync/atomic"
)

// The states of a rank in a World.
const (
	stateOpen    uint32 = iota
	stateWriting        // the rest of the board is being written
	stateLeft           // closed the World in good order
	stateBroken         // gave up on the World
)

// board is where a rank shows its peers its state in a World. It may lie in
// shared memory. It is written once.
type board struct {
	state   atomic.Uint32
	culprit int32 // broken: the rank whose failure is to blame
	length  int32
	text    [500]byte // broken: why
}

// set shows the state; only the first call counts.
func (b *board) set(state uint32, culprit int, text string) {
	if !b.state.CompareAndSwap(stateOpen, stateWriting) {
		return
	}
	b.culprit = int32(culprit)
	b.length = int32(copy(b.text[:], text))
	b.state.Store(state)
}

// reason returns what a broken rank wrote; its author is another process, so
// nothing in it is trusted.
func (b *board) reason(size int) (culprit int, text string) {
	n := max(0, min(int(b.length), len(b.text)))
	culprit = int(b.culprit)
	if culprit < 0 || culprit >= size {
		culprit = -1
	}
	return culprit, string(b.text[:n])
}

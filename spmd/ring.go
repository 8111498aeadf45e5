package spmd

import (
	"sync/atomic"
	"unsafe"
)

const (
	line  = 64       // bytes of a cache line; messages start at multiples of it
	piece = 32 << 10 // bytes moved before they are shown to the other side
)

// ringIndex is the part of a ring that both sides see. It may lie in shared
// memory: its layout is part of the segment's format.
type ringIndex struct {
	head atomic.Uint64 // bytes consumed so far
	_    [line - 8]byte
	tail atomic.Uint64 // bytes produced so far
	_    [line - 8]byte
}

// ring is a queue of bytes from one producer to one consumer. Either side may
// use a ring value of its own over the same memory, or both may share one: the
// producer touches only tail and seenHead, the consumer head and seenTail.
type ring struct {
	index *ringIndex
	data  []byte // a power of two long, aligned to a cache line

	tail, seenHead uint64
	_              [line - 16]byte
	head, seenTail uint64
}

const ringIndexSize = int(unsafe.Sizeof(ringIndex{}))

// newRing returns a ring in the heap.
func newRing(capacity int) *ring {
	words := make([]uint64, (ringIndexSize+capacity+line)/8)
	b := bytesOf(words)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (line - 1)
	return ringAt(b[skip:], capacity)
}

// ringAt lays a ring over b, which is aligned to a cache line.
func ringAt(b []byte, capacity int) *ring {
	return &ring{
		index: (*ringIndex)(unsafe.Pointer(unsafe.SliceData(b))),
		data:  b[ringIndexSize : ringIndexSize+capacity : ringIndexSize+capacity],
	}
}

// space returns memory for up to limit bytes to be produced next. Limit and
// result are whole cache lines; the result may be less than is free, where the
// ring wraps.
func (r *ring) space(limit int) []byte {
	size := uint64(len(r.data))
	free := size - (r.tail - r.seenHead)
	if free < min(uint64(limit), piece) {
		r.seenHead = r.index.head.Load()
		free = size - (r.tail - r.seenHead)
	}
	at := r.tail & (size - 1)
	return r.data[at : at+min(free&^(line-1), size-at, uint64(limit))]
}

// publish shows the consumer n more bytes.
func (r *ring) publish(n int) {
	r.tail += uint64(n)
	r.index.tail.Store(r.tail)
}

// ready returns up to limit of the bytes to be consumed next.
func (r *ring) ready(limit int) []byte {
	size := uint64(len(r.data))
	if r.seenTail == r.head {
		r.seenTail = r.index.tail.Load()
	}
	at := r.head & (size - 1)
	return r.data[at : at+min(r.seenTail-r.head, size-at, uint64(limit))]
}

// release gives n bytes back to the producer.
func (r *ring) release(n int) {
	r.head += uint64(n)
	r.index.head.Store(r.head)
}

// padded rounds n up to whole cache lines.
func padded(n int) int { return (n + line - 1) &^ (line - 1) }

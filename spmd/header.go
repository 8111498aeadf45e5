package spmd

import (
	"encoding/binary"
	"fmt"
)

// kind is what a message belongs to.
type kind uint8

const (
	kindBarrier kind = iota + 1
	kindBroadcast
	kindReduce
	kindAllReduce
	kindReduceScatter
	kindAllGather
	kindGather
	kindScatter
	kindAllToAll
	kindGradient
	kindMessage
)

var kindNames = [...]string{"nothing", "barrier", "broadcast", "reduce", "all-reduce", "reduce-scatter", "all-gather", "gather", "scatter", "all-to-all", "gradient reduction", "message"}

func (k kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("unknown operation %d", uint8(k))
	}
	return kindNames[k]
}

// header precedes every message in a ring and fills one cache line. All ranks
// of a collective write the same one, but for size.
type header struct {
	kind     kind
	op       Op
	dtype    dtype
	root     int32  // or a message's tag, or a gradient's shards
	sequence uint64 // of collectives on this World, from 1
	count    int64  // elements of the whole operation
	size     int64  // bytes that follow this header
}

const headerMagic = 0x646d7073 // "spmd"

func (h header) put(b []byte) {
	_ = b[line-1]
	clear(b[8:line])
	binary.LittleEndian.PutUint32(b, headerMagic)
	b[4], b[5], b[6], b[7] = byte(h.kind), byte(h.op), byte(h.dtype), 0
	binary.LittleEndian.PutUint32(b[8:], uint32(h.root))
	binary.LittleEndian.PutUint64(b[16:], h.sequence)
	binary.LittleEndian.PutUint64(b[24:], uint64(h.count))
	binary.LittleEndian.PutUint64(b[32:], uint64(h.size))
}

// maxMessage bounds a message's size: more can only be garbage.
const maxMessage = 1 << 42

func parseHeader(b []byte) (header, error) {
	if len(b) < line || binary.LittleEndian.Uint32(b) != headerMagic {
		return header{}, fmt.Errorf("a message does not start with a header")
	}
	h := header{
		kind: kind(b[4]), op: Op(b[5]), dtype: dtype(b[6]),
		root:     int32(binary.LittleEndian.Uint32(b[8:])),
		sequence: binary.LittleEndian.Uint64(b[16:]),
		count:    int64(binary.LittleEndian.Uint64(b[24:])),
		size:     int64(binary.LittleEndian.Uint64(b[32:])),
	}
	if h.size < 0 || h.size > maxMessage {
		return header{}, fmt.Errorf("a message claims a size of %d bytes", h.size)
	}
	return h, nil
}

// String describes the operation: "all-reduce 7 of 100 float32 (sum)".
func (h header) String() string {
	s := fmt.Sprintf("%v %d", h.kind, h.sequence)
	if h.dtype == byteType {
		return s + " of bytes"
	}
	switch h.kind {
	case kindBarrier:
		return s
	case kindAllGather, kindAllToAll:
		return fmt.Sprintf("%s of %d %v", s, h.count, h.dtype)
	case kindBroadcast, kindScatter:
		return fmt.Sprintf("%s of %d %v from rank %d", s, h.count, h.dtype, h.root)
	case kindGather:
		return fmt.Sprintf("%s of %d %v to rank %d", s, h.count, h.dtype, h.root)
	case kindReduce:
		return fmt.Sprintf("%s of %d %v (%v) to rank %d", s, h.count, h.dtype, h.op, h.root)
	case kindGradient:
		return fmt.Sprintf("%s of %d %v over %d shards", s, h.count, h.dtype, h.root)
	case kindMessage:
		return fmt.Sprintf("message of %d %v with tag %d", h.count, h.dtype, h.root)
	}
	return fmt.Sprintf("%s of %d %v (%v)", s, h.count, h.dtype, h.op)
}

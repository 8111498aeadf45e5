package store

import "fmt"

// op is a request's verb.
type op byte

const (
	opSet op = iota + 1
	opGet
	opAdd
	opCompareAndSet
	opDelete
	opWait
	opWatch
	opKeys
	opCancel // takes back the waiting request of the same number; not answered
)

// request is one call. Fields that its verb does not name are not sent.
type request struct {
	op     op
	id     uint32
	keys   []string // exactly one, but for opWait (any number) and opCancel (none); opKeys: the prefix
	value  []byte   // opSet, opCompareAndSet
	hasOld bool     // opCompareAndSet: false expects the key to be absent
	old    []byte   // opCompareAndSet
	delta  int64    // opAdd
	after  uint64   // opWatch: the revision that the caller knows
}

// encode returns r's frame.
func (r request) encode() ([]byte, error) {
	for _, k := range r.keys {
		if len(k) > MaxKey {
			return nil, fmt.Errorf("key of %d bytes, want at most %d", len(k), MaxKey)
		}
	}
	e := newEncoder(64 + len(r.value) + len(r.old))
	e.u8(byte(r.op))
	e.u32(r.id)
	if r.op == opCancel {
		return e.frame()
	}
	e.u32(uint32(len(r.keys)))
	for _, k := range r.keys {
		e.bytes([]byte(k))
	}
	switch r.op {
	case opSet:
		e.bytes(r.value)
	case opCompareAndSet:
		e.flag(r.hasOld)
		e.bytes(r.old)
		e.bytes(r.value)
	case opAdd:
		e.u64(uint64(r.delta))
	case opWatch:
		e.u64(r.after)
	}
	return e.frame()
}

// parseRequest decodes a frame's body. The request aliases body.
func parseRequest(body []byte) (request, error) {
	d := &decoder{rest: body}
	r := request{op: op(d.u8()), id: d.u32()}
	if d.err == nil && (r.op < opSet || r.op > opCancel) {
		return r, fmt.Errorf("unknown verb %d", r.op)
	}
	if r.op == opCancel {
		return r, d.end()
	}
	r.keys = d.keys()
	if d.err == nil && len(r.keys) != 1 && r.op != opWait {
		return r, fmt.Errorf("verb %d with %d keys, want 1", r.op, len(r.keys))
	}
	switch r.op {
	case opSet:
		r.value = d.bytes()
	case opCompareAndSet:
		r.hasOld = d.flag()
		r.old = d.bytes()
		r.value = d.bytes()
	case opAdd:
		r.delta = int64(d.u64())
	case opWatch:
		r.after = d.u64()
	}
	return r, d.end()
}

// response answers the request of the same id. Which fields matter depends on
// the verb; failed is set when the call could not be done.
type response struct {
	id       uint32
	failed   string
	yes      bool   // opCompareAndSet: swapped; opDelete: existed
	present  bool   // opGet, opWatch, opCompareAndSet: there is a value
	value    []byte // that value
	number   int64  // opAdd: the sum
	revision uint64 // opWatch
	keys     []string
}

func (r response) encode() ([]byte, error) {
	e := newEncoder(64 + len(r.value))
	e.u32(r.id)
	e.bytes([]byte(r.failed))
	e.flag(r.yes)
	e.flag(r.present)
	e.bytes(r.value)
	e.u64(uint64(r.number))
	e.u64(r.revision)
	e.u32(uint32(len(r.keys)))
	for _, k := range r.keys {
		e.bytes([]byte(k))
	}
	return e.frame()
}

// parseResponse decodes a frame's body. The response aliases body.
func parseResponse(body []byte) (response, error) {
	d := &decoder{rest: body}
	r := response{id: d.u32(), failed: string(d.bytes()), yes: d.flag(), present: d.flag(),
		value: d.bytes(), number: int64(d.u64()), revision: d.u64(), keys: d.keys()}
	return r, d.end()
}

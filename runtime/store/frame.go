package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Limits of the protocol. A value may fill a frame but for its key and header.
const (
	MaxFrame = 16 << 20 // bytes of a frame's body
	MaxKey   = 1 << 10  // bytes of a key
)

// readFrame reads one frame's body. io.EOF means that the peer closed between frames.
func readFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > MaxFrame {
		return nil, fmt.Errorf("frame of %d bytes, want 1 to %d", n, MaxFrame)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("frame of %d bytes cut short: %w", n, io.ErrUnexpectedEOF)
	}
	return body, nil
}

// encoder appends fixed-width fields, after room for the frame's length.
type encoder struct{ buf []byte }

func newEncoder(size int) *encoder { return &encoder{make([]byte, 4, 4+size)} }

func (e *encoder) u8(v byte)    { e.buf = append(e.buf, v) }
func (e *encoder) u32(v uint32) { e.buf = binary.BigEndian.AppendUint32(e.buf, v) }
func (e *encoder) u64(v uint64) { e.buf = binary.BigEndian.AppendUint64(e.buf, v) }

func (e *encoder) bytes(b []byte) {
	e.u32(uint32(len(b)))
	e.buf = append(e.buf, b...)
}

func (e *encoder) flag(b bool) {
	if b {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

// frame is the whole frame, length first, or an error when the body is too long.
func (e *encoder) frame() ([]byte, error) {
	n := len(e.buf) - 4
	if n > MaxFrame {
		return nil, fmt.Errorf("message of %d bytes is over the store's limit of %d", n, MaxFrame)
	}
	binary.BigEndian.PutUint32(e.buf, uint32(n))
	return e.buf, nil
}

var errCutShort = errors.New("message cut short")

// decoder reads what encoder wrote. The first error sticks.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && n > len(d.rest) {
		d.err = errCutShort
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) u8() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) bytes() []byte {
	n := d.u32()
	if n > math.MaxInt32 {
		d.err = errCutShort
	}
	return d.take(int(n))
}

func (d *decoder) flag() bool {
	v := d.u8()
	if v > 1 && d.err == nil {
		d.err = fmt.Errorf("flag of value %d", v)
	}
	return v == 1
}

func (d *decoder) key() string {
	b := d.bytes()
	if len(b) > MaxKey && d.err == nil {
		d.err = fmt.Errorf("key of %d bytes, want at most %d", len(b), MaxKey)
	}
	return string(b)
}

// keys reads a counted list; each key costs at least four bytes, so the list
// cannot be made to allocate more than the frame holds.
func (d *decoder) keys() []string {
	n := int(d.u32())
	if d.err == nil && (n < 0 || n > len(d.rest)/4) {
		d.err = errCutShort
	}
	if d.err != nil || n == 0 {
		return nil
	}
	keys := make([]string, 0, n)
	for range n {
		keys = append(keys, d.key())
	}
	return keys
}

// end reports the first error, or that bytes are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%d bytes after the message's end", len(d.rest))
	}
	return d.err
}

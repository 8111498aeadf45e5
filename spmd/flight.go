package spmd

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// FlightLength is how many collectives a Flight holds: the last ones.
const FlightLength = 256

// flightRecord is the size of a collective's record in bytes: its header as it
// goes to the peers, and a line of what happened.
const (
	flightRecord = 2 * line
	flightBytes  = FlightLength * flightRecord
)

// Flight is a rank's flight recorder: what its last collectives are, and how far
// they got. Its memory belongs to a file, from which another process reads it
// when the rank has died or stands still. It may be used by several Worlds at
// once; a nil Flight records nothing.
type Flight struct {
	mu   sync.Mutex
	mem  []byte
	next uint64 // number of the next record, from 1
}

// OpenFlight records into a file, which is made as long as is needed. The file
// may be closed afterwards; the memory stays until the process ends.
func OpenFlight(file *os.File) (*Flight, error) {
	if err := file.Truncate(flightBytes); err != nil {
		return nil, fmt.Errorf("make room for the flight recorder: %w", err)
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, flightBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the flight recorder: %w", err)
	}
	f := &Flight{mem: mem, next: 1}
	for _, r := range parseFlight(mem) {
		f.next = r.number + 1 // it goes on
	}
	return f, nil
}

// flightState is how far a collective got.
type flightState uint8

const (
	flightRuns flightState = iota + 1
	flightDone
	flightFailed
)

// record is a record that is being written; the zero record records nothing.
type record struct {
	mem    []byte
	number uint64
}

// begin starts the record of a collective.
func (f *Flight) begin(w *World, h header) record {
	if f == nil {
		return record{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := int(f.next%FlightLength) * flightRecord
	e := record{f.mem[at : at+flightRecord], f.next}
	b := e.mem[line:]
	binary.LittleEndian.PutUint64(b, 0) // no record until it is whole
	h.put(e.mem)
	binary.LittleEndian.PutUint64(b[8:], uint64(time.Now().UnixNano()))
	binary.LittleEndian.PutUint64(b[16:], 0)
	binary.LittleEndian.PutUint32(b[24:], uint32(w.generation))
	binary.LittleEndian.PutUint32(b[28:], uint32(w.rank))
	binary.LittleEndian.PutUint32(b[32:], uint32(w.size))
	binary.LittleEndian.PutUint32(b[36:], ^uint32(0))
	b[40] = byte(flightRuns)
	binary.LittleEndian.PutUint64(b, f.next)
	f.next++
	return e
}

// gone tells whether nothing is recorded, or the record's place has been taken.
func (e record) gone() bool {
	return e.mem == nil || binary.LittleEndian.Uint64(e.mem[line:]) != e.number
}

// waits notes the peer that the collective cannot go on without.
func (e record) waits(peer int) {
	if !e.gone() {
		binary.LittleEndian.PutUint32(e.mem[line+36:], uint32(int32(peer)))
	}
}

// end notes how the collective ended.
func (e record) end(err error) {
	if e.gone() {
		return
	}
	binary.LittleEndian.PutUint64(e.mem[line+16:], uint64(time.Now().UnixNano()))
	state := flightDone
	if err != nil {
		state = flightFailed
	}
	e.mem[line+40] = byte(state)
}

// flightLine is one record as it is read.
type flightLine struct {
	number       uint64
	head         header
	began, ended time.Time
	generation   int
	rank, size   int
	peer         int // that it waits for, or waited for last; -1: none
	state        flightState
}

// parseFlight returns the whole records, oldest first. It takes any bytes: the
// process may have died, or go on, while it writes.
func parseFlight(mem []byte) []flightLine {
	var lines []flightLine
	for ; len(mem) >= flightRecord; mem = mem[flightRecord:] {
		h, err := parseHeader(mem)
		b := mem[line:]
		r := flightLine{number: binary.LittleEndian.Uint64(b), head: h,
			began: time.Unix(0, int64(binary.LittleEndian.Uint64(b[8:]))), ended: time.Unix(0, int64(binary.LittleEndian.Uint64(b[16:]))),
			generation: int(binary.LittleEndian.Uint32(b[24:])), rank: int(binary.LittleEndian.Uint32(b[28:])), size: int(binary.LittleEndian.Uint32(b[32:])),
			peer: int(int32(binary.LittleEndian.Uint32(b[36:]))), state: flightState(b[40])}
		if err == nil && r.number > 0 && r.state >= flightRuns && r.state <= flightFailed {
			lines = append(lines, r)
		}
	}
	slices.SortFunc(lines, func(a, b flightLine) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return lines
}

// FlightReport is a flight recorder's content in words.
type FlightReport struct {
	Last string // the last collective and where it stands, in a line; "": there was none
	Text string // a line for each, the oldest first
}

// ReadFlight reads what a Flight has written into a file, as of now.
func ReadFlight(file *os.File, now time.Time) (FlightReport, error) {
	mem := make([]byte, flightBytes)
	n, err := file.ReadAt(mem, 0)
	if n == 0 {
		return FlightReport{}, nil // nobody has opened it
	}
	if n < flightBytes {
		return FlightReport{}, fmt.Errorf("read the flight recorder: %d of %d bytes: %w", n, flightBytes, err)
	}
	lines := parseFlight(mem)
	if len(lines) == 0 {
		return FlightReport{}, nil
	}
	var text strings.Builder
	fmt.Fprintln(&text, "began            took        world            collective, state")
	for _, r := range lines {
		fmt.Fprintln(&text, r.row())
	}
	return FlightReport{lines[len(lines)-1].last(now), text.String()}, nil
}

func (r flightLine) row() string {
	took := "-"
	if r.state != flightRuns {
		took = r.ended.Sub(r.began).Round(time.Microsecond).String()
	}
	world := fmt.Sprintf("%d: rank %d/%d", r.generation, r.rank, r.size)
	return fmt.Sprintf("%s  %-10s  %-15s  %v, %s", r.began.UTC().Format("15:04:05.000000"), took, world, r.head, r.standing())
}

// standing says how far the collective got.
func (r flightLine) standing() string {
	switch {
	case r.state == flightDone:
		return "done"
	case r.state == flightFailed && r.peer >= 0:
		return fmt.Sprintf("failed, it had waited for rank %d", r.peer)
	case r.state == flightFailed:
		return "failed"
	case r.peer >= 0:
		return fmt.Sprintf("waits for rank %d", r.peer)
	}
	return "runs"
}

func (r flightLine) last(now time.Time) string {
	if r.state == flightRuns {
		return fmt.Sprintf("%v, begun %v before, %s", r.head, now.Sub(r.began).Round(time.Millisecond), r.standing())
	}
	return fmt.Sprintf("%v, %s %v before", r.head, r.standing(), now.Sub(r.ended).Round(time.Millisecond))
}

package spmd

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// segment is the memory that one rank shares with the others of its host: its
// board, its bells and the rings into which the others write. It is a memfd,
// which has no name in any file system: the others open it through
// /proc/PID/fd, and the kernel frees it with its last user.
//
//	0     magic, nonce
//	128   board
//	1024  bells, a cache line each
//	4096  rings: for each lane, for each rank of the World, index and bytes
type segment struct {
	fd    int // -1 once closed
	mem   []byte
	nonce string
	size  int // ranks
}

const (
	segmentMagic = "spmdseg1"
	boardOffset  = 128
	bellOffset   = 1024
	ringOffset   = 4096
)

func segmentBytes(size int) int {
	n := ringOffset
	for _, c := range ringCapacity {
		n += size * (ringIndexSize + c)
	}
	return n
}

// newSegment makes the segment of one rank of a World of size ranks. Memory is
// taken only as rings are used.
func newSegment(size int) (*segment, error) {
	fd, err := unix.MemfdCreate("spmd", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create shared memory: %w", err)
	}
	s := &segment{fd: fd, size: size}
	if err := s.fill(); err != nil {
		s.close()
		return nil, fmt.Errorf("create shared memory: %w", err)
	}
	return s, nil
}

func (s *segment) fill() error {
	if err := unix.Ftruncate(s.fd, int64(segmentBytes(s.size))); err != nil {
		return err
	}
	// A segment that could shrink would kill its users with SIGBUS.
	if _, err := unix.FcntlInt(uintptr(s.fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return err
	}
	if err := s.mapIn(); err != nil {
		return err
	}
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	copy(s.mem, segmentMagic)
	copy(s.mem[len(segmentMagic):], nonce)
	s.nonce = hex.EncodeToString(nonce)
	return nil
}

func (s *segment) mapIn() error {
	var err error
	s.mem, err = unix.Mmap(s.fd, 0, segmentBytes(s.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// openSegment maps the segment that another process holds open as fd.
func openSegment(pid, fd int, nonce string, size int) (*segment, error) {
	name := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	f, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open shared memory %s (transport \"tcp\" does without): %w", name, err)
	}
	s := &segment{fd: f, nonce: nonce, size: size}
	if err := s.adopt(); err != nil {
		s.close()
		return nil, fmt.Errorf("open shared memory %s: %w", name, err)
	}
	s.forget()
	return s, nil
}

// adopt maps an opened file if it is the segment that it should be.
func (s *segment) adopt() error {
	seals, err := unix.FcntlInt(uintptr(s.fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return fmt.Errorf("it is not a sealed memfd")
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return err
	}
	if st.Size != int64(segmentBytes(s.size)) {
		return fmt.Errorf("it has %d bytes instead of %d", st.Size, segmentBytes(s.size))
	}
	if err := s.mapIn(); err != nil {
		return err
	}
	head := s.mem[:len(segmentMagic)+16]
	if string(head[:8]) != segmentMagic || hex.EncodeToString(head[8:]) != s.nonce {
		return fmt.Errorf("it belongs to another world")
	}
	return nil
}

func (s *segment) board() *board { return (*board)(unsafe.Pointer(&s.mem[boardOffset])) }

func (s *segment) bell(lane int) *bell {
	return &bell{words: (*bellWords)(unsafe.Pointer(&s.mem[bellOffset+lane*line]))}
}

// ring returns the ring into which a rank writes.
func (s *segment) ring(lane, from int) *ring {
	at := ringOffset
	for _, c := range ringCapacity[:lane] {
		at += s.size * (ringIndexSize + c)
	}
	at += from * (ringIndexSize + ringCapacity[lane])
	return ringAt(s.mem[at:], ringCapacity[lane])
}

// forget closes the file; the memory stays.
func (s *segment) forget() {
	if s.fd >= 0 {
		_ = unix.Close(s.fd)
		s.fd = -1
	}
}

func (s *segment) close() {
	s.forget()
	if s.mem != nil {
		_ = unix.Munmap(s.mem)
		s.mem = nil
	}
}

package spmd

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bellWords is the part of a bell that may lie in shared memory.
type bellWords struct {
	strikes atomic.Uint32 // the futex word
	waiting atomic.Uint32 // 1 while the owner sleeps or is about to
	_       [line - 8]byte
}

// bell wakes its one owner. The owner arms it, looks once more for work, then
// parks. Others change what the owner waits for first and ring afterwards; a
// ring costs one load unless the owner sleeps.
type bell struct {
	words *bellWords
	wake  chan struct{} // nil: a futex, for an owner in another process
}

// newBell returns a bell for goroutines of one process.
func newBell() *bell {
	return &bell{words: new(bellWords), wake: make(chan struct{}, 1)}
}

func (b *bell) ring() {
	if b.words.waiting.Load() == 0 {
		return
	}
	b.words.waiting.Store(0)
	b.words.strikes.Add(1)
	if b.wake == nil {
		futexWake(&b.words.strikes)
		return
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// arm announces that the owner is about to park and returns park's argument.
func (b *bell) arm() uint32 {
	strikes := b.words.strikes.Load()
	b.words.waiting.Store(1)
	return strikes
}

func (b *bell) disarm() { b.words.waiting.Store(0) }

// park sleeps until the bell rings, for at most limit. It may return early.
func (b *bell) park(strikes uint32, limit time.Duration) {
	defer b.disarm()
	if b.wake == nil {
		futexWait(&b.words.strikes, strikes, limit)
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-b.wake:
	case <-timer.C:
	}
}

const (
	futexOpWait = 0 // FUTEX_WAIT, not private: the word is shared between processes
	futexOpWake = 1
)

func futexWait(word *atomic.Uint32, value uint32, limit time.Duration) {
	ts := unix.NsecToTimespec(int64(limit))
	// EAGAIN, EINTR and ETIMEDOUT all mean: look again.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWait, uintptr(value), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

func futexWake(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexOpWake, 1, 0, 0, 0)
}

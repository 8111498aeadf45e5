package spmd

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"
)

// TestRing passes random runs of bytes from one goroutine to another.
func TestRing(t *testing.T) {
	const total = 1 << 20
	r := newRing(4096)
	if uintptr(unsafe.Pointer(r.index))%line != 0 || uintptr(unsafe.Pointer(&r.data[0]))%line != 0 {
		t.Fatal("the ring is not aligned")
	}
	empty, full := newBell(), newBell()
	go func() {
		rnd := rand.New(rand.NewPCG(1, 1))
		for sent := 0; sent < total; {
			room := r.space(line * (1 + rnd.IntN(80)))
			if len(room) == 0 {
				sleepUnless(full, func() bool { return len(r.space(line)) > 0 })
				continue
			}
			if len(room)%line != 0 {
				t.Errorf("room for %d bytes", len(room))
			}
			for i := range room {
				room[i] = byte((sent + i) * 7)
			}
			r.publish(len(room))
			empty.ring()
			sent += len(room)
		}
	}()
	rnd := rand.New(rand.NewPCG(2, 2))
	for got := 0; got < total; {
		b := r.ready(1 + rnd.IntN(300))
		if len(b) == 0 {
			sleepUnless(empty, func() bool { return len(r.ready(1)) > 0 })
			continue
		}
		for i := range b {
			if b[i] != byte((got+i)*7) {
				t.Fatalf("byte %d is wrong", got+i)
			}
		}
		r.release(len(b))
		full.ring()
		got += len(b)
	}
}

func sleepUnless(b *bell, ready func() bool) {
	strikes := b.arm()
	if ready() {
		b.disarm()
		return
	}
	b.park(strikes, DefaultTimeout)
}

func TestSegmentRefusesStrangers(t *testing.T) {
	a, err := newSegment(2)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	pid := os.Getpid()
	if s, err := openSegment(pid, a.fd, a.nonce, 2); err != nil {
		t.Error(err)
	} else {
		s.close()
	}
	for name, open := range map[string]func() (*segment, error){
		"another nonce":  func() (*segment, error) { return openSegment(pid, a.fd, "00", 2) },
		"another size":   func() (*segment, error) { return openSegment(pid, a.fd, a.nonce, 3) },
		"not a segment":  func() (*segment, error) { return openSegment(pid, 2, a.nonce, 2) },
		"not even there": func() (*segment, error) { return openSegment(pid, 99999, a.nonce, 2) },
	} {
		if _, err := open(); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

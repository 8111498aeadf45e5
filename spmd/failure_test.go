package spmd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestMismatch lets two ranks call different things: both get an error, and at
// least one error names both sides.
func TestMismatch(t *testing.T) {
	ctx := context.Background()
	for name, calls := range map[string][2]func(w *World) error{
		"operation": {
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 7), Sum) },
			func(w *World) error { return Broadcast(ctx, w, make([]float32, 7), 0) }},
		"length": {
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 7), Sum) },
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 8), Sum) }},
		"small and large": {
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 7), Sum) },
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 1<<20), Sum) }},
		"type": {
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 2), Sum) },
			func(w *World) error { return AllReduce(ctx, w, make([]int32, 2), Sum) }},
		"reduction": {
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 2), Sum) },
			func(w *World) error { return AllReduce(ctx, w, make([]float32, 2), Max) }},
		"root": {
			func(w *World) error { return Broadcast(ctx, w, make([]float32, 2), 0) },
			func(w *World) error { return Broadcast(ctx, w, make([]float32, 2), 1) }},
		"bad arguments": {
			func(w *World) error { return AllGather(ctx, w, make([]float32, 3), make([]float32, 1)) },
			func(w *World) error { return AllGather(ctx, w, make([]float32, 2), make([]float32, 1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			worlds := InMemory(2)
			errs := together(t, worlds, func(w *World) error {
				if err := calls[w.rank](w); err != nil {
					return err
				}
				return w.Barrier(ctx) // a broadcast's root learns of it here
			})
			if errs[0] == nil || errs[1] == nil {
				t.Fatalf("no error on one side: %v; %v", errs[0], errs[1])
			}
			var m *MismatchError
			if name != "bad arguments" && !errors.As(errs[0], &m) && !errors.As(errs[1], &m) {
				t.Errorf("no mismatch: %v; %v", errs[0], errs[1])
			}
			if m != nil && (!strings.Contains(m.Error(), "rank 0") || !strings.Contains(m.Error(), "rank 1")) {
				t.Errorf("one side is not named: %v", m)
			}
		})
	}
}

func TestTimeoutNamesTheMissing(t *testing.T) {
	for name, worlds := range map[string][]*World{
		"memory": InMemory(2), "shm": joined(t, 2, transport("shm")), "tcp": joined(t, 2, transport("tcp")),
	} {
		t.Run(name, func(t *testing.T) {
			defer worlds[1].Close()
			defer worlds[0].Close()
			worlds[0].timeout = 30 * time.Millisecond
			err := AllReduce(t.Context(), worlds[0], make([]float32, 256), Sum)
			var late *TimeoutError
			if !errors.As(err, &late) || late.Rank != 0 || late.Peer != 1 || late.Bytes != 1024 || late.Op != "all-reduce" {
				t.Fatalf("got %v", err)
			}
			if want := "rank 0: all-reduce: 1024 bytes from rank 1 did not arrive within 30ms"; err.Error() != want {
				t.Errorf("got %q", err)
			}
			if again := worlds[0].Barrier(t.Context()); !errors.Is(again, err) {
				t.Errorf("the world is not broken: %v", again)
			}
			// Rank 0's share of the sum may be here all the same.
			_ = AllReduce(t.Context(), worlds[1], make([]float32, 256), Sum)
			var peer *PeerError
			if err := worlds[1].Barrier(t.Context()); !errors.As(err, &peer) || peer.Peer != 0 || !strings.Contains(err.Error(), "did not arrive") {
				t.Errorf("rank 1 was not told why: %v", err)
			}
		})
	}
}

func TestSendTimeout(t *testing.T) {
	worlds := InMemory(2)
	defer worlds[1].Close()
	defer worlds[0].Close()
	worlds[0].timeout = 30 * time.Millisecond
	err := Broadcast(t.Context(), worlds[0], make([]float32, 1<<20), 0)
	var late *TimeoutError
	if !errors.As(err, &late) || !late.Sending || late.Peer != 1 || late.Bytes <= 0 {
		t.Fatalf("got %v", err)
	}
}

func TestContextEndsAnOperation(t *testing.T) {
	for name, worlds := range map[string][]*World{"memory": InMemory(2), "shm": joined(t, 2, transport("shm"))} {
		t.Run(name, func(t *testing.T) {
			defer worlds[1].Close()
			defer worlds[0].Close()
			why := errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			result := make(chan error)
			go func() { result <- worlds[0].Barrier(ctx) }()
			cancel(why)
			if err := <-result; !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestPeerLeaves closes one rank while the other needs it.
func TestPeerLeaves(t *testing.T) {
	for name, worlds := range map[string][]*World{
		"memory": InMemory(2), "shm": joined(t, 2, transport("shm")), "tcp": joined(t, 2, transport("tcp")),
	} {
		t.Run(name, func(t *testing.T) {
			defer worlds[0].Close()
			result := make(chan error)
			go func() { result <- AllReduce(t.Context(), worlds[0], make([]float64, 1<<20), Sum) }()
			_ = worlds[1].Close()
			var peer *PeerError
			if err := <-result; !errors.As(err, &peer) || peer.Peer != 1 || !errors.Is(err, errLeft) {
				t.Errorf("got %v", err)
			}
			if err := worlds[1].Barrier(t.Context()); !errors.Is(err, ErrClosed) {
				t.Errorf("the closed side got %v", err)
			}
		})
	}
}

// TestCloseEndsOwnOperations closes a World with works in flight.
func TestCloseEndsOwnOperations(t *testing.T) {
	worlds := InMemory(2)
	defer worlds[1].Close()
	var works []*Work
	for range 3 {
		works = append(works, AllReduceAsync(worlds[0], []int32{1}, Sum))
	}
	works = append(works, RecvAsync(worlds[0], []int32{1}, 1, 0))
	_ = worlds[0].Close()
	for i, k := range works {
		if err := k.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("work %d: %v", i, err)
		}
	}
}

// TestLeavingLosesNothing lets one rank leave right after its last send: the
// other still gets everything.
func TestLeavingLosesNothing(t *testing.T) {
	for name, worlds := range map[string][]*World{
		"memory": InMemory(2), "shm": joined(t, 2, transport("shm")), "tcp": joined(t, 2, transport("tcp")),
	} {
		t.Run(name, func(t *testing.T) {
			succeed(t, worlds, func(w *World) error {
				x := filled[int32](30_000, func(i int) int { return i })
				if w.rank == 1 {
					clear(x)
				}
				if err := Broadcast(t.Context(), w, x, 0); err != nil {
					return err
				}
				if bad := differences(x, func(i int) int { return i }); bad > 0 {
					t.Errorf("%d wrong elements", bad)
				}
				return nil
			})
		})
	}
}

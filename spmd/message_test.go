package spmd

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestExchange sends more than a ring holds in both directions at once.
func TestExchange(t *testing.T) {
	for name, worlds := range map[string][]*World{
		"memory": InMemory(2), "shm": joined(t, 2, transport("shm")), "tcp": joined(t, 2, transport("tcp")),
	} {
		t.Run(name, func(t *testing.T) {
			succeed(t, worlds, func(w *World) error {
				const n = 300_000
				sent := SendAsync(w, filled[int32](n, func(i int) int { return i + w.rank }), 1-w.rank, 5)
				if err := w.Barrier(t.Context()); err != nil { // nobody receives yet
					return err
				}
				got := make([]int32, n)
				if err := Recv(t.Context(), w, got, 1-w.rank, 5); err != nil {
					return err
				}
				if bad := differences(got, func(i int) int { return i + 1 - w.rank }); bad > 0 {
					t.Errorf("%d wrong elements", bad)
				}
				return sent.Wait(t.Context())
			})
		})
	}
}

// TestTagsMatch receives tags in the opposite order, and equal tags in order.
func TestTagsMatch(t *testing.T) {
	succeed(t, InMemory(2), func(w *World) error {
		ctx := t.Context()
		if w.rank == 0 {
			for _, m := range []struct{ tag, value int }{{1, 10}, {2, 20}, {1, 11}, {2, 21}} {
				if err := Send(ctx, w, []int32{int32(m.value)}, 1, m.tag); err != nil {
					return err
				}
			}
			return w.Barrier(ctx)
		}
		for _, m := range []struct{ tag, value int }{{2, 20}, {1, 10}, {2, 21}, {1, 11}} {
			x := []int32{0}
			if err := Recv(ctx, w, x, 0, m.tag); err != nil {
				return err
			}
			if int(x[0]) != m.value {
				t.Errorf("tag %d: got %d instead of %d", m.tag, x[0], m.value)
			}
		}
		return w.Barrier(ctx)
	})
}

func TestMessagesToOneself(t *testing.T) {
	w := Solo()
	defer w.Close()
	want := RecvAsync(w, []float64{0}, 0, 3)
	x := []float64{0}
	later := RecvAsync(w, x, 0, 3)
	for _, v := range []float64{1, 2} {
		if err := Send(t.Context(), w, []float64{v}, 0, 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(want.Wait(t.Context()), later.Wait(t.Context())); err != nil || x[0] != 2 {
		t.Errorf("got %v, %v", x, err)
	}
}

// TestMessageMismatch drops a message of the wrong length, and only that.
func TestMessageMismatch(t *testing.T) {
	succeed(t, InMemory(2), func(w *World) error {
		ctx := t.Context()
		if w.rank == 0 {
			if err := Send(ctx, w, make([]int64, 50_000), 1, 0); err != nil {
				return err
			}
			return Send(ctx, w, []int64{7}, 1, 0)
		}
		x := []int64{0}
		var m *MismatchError
		if err := Recv(ctx, w, x, 0, 0); !errors.As(err, &m) {
			t.Errorf("got %v", err)
		}
		if err := Recv(ctx, w, x, 0, 0); err != nil || x[0] != 7 {
			t.Errorf("got %v, %v", x, err)
		}
		return nil
	})
}

// TestMessageCancelled gives up on a Recv; its message is there for the next.
func TestMessageCancelled(t *testing.T) {
	succeed(t, InMemory(2), func(w *World) error {
		if w.rank == 1 {
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error)
			go func() { result <- Recv(ctx, w, make([]int32, 1), 0, 0) }()
			cancel()
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		if err := w.Barrier(t.Context()); err != nil {
			return err
		}
		x := []int32{41}
		if w.rank == 0 {
			return Send(t.Context(), w, x, 1, 0)
		}
		x[0] = 0
		if err := Recv(t.Context(), w, x, 0, 0); err != nil || x[0] != 41 {
			t.Errorf("got %v, %v", x, err)
		}
		return nil
	})
}

func TestMessageTimeout(t *testing.T) {
	worlds := InMemory(2)
	defer worlds[1].Close()
	defer worlds[0].Close()
	worlds[0].timeout = 20 * time.Millisecond
	var late *TimeoutError
	if err := Recv(t.Context(), worlds[0], make([]float32, 3), 1, 9); !errors.As(err, &late) || late.Peer != 1 || late.Bytes != 12 {
		t.Errorf("got %v", err)
	}
	if err := Send(t.Context(), worlds[0], make([]float32, 1<<20), 1, 9); !errors.As(err, &late) || !late.Sending {
		t.Errorf("got %v", err)
	}
}

func TestMessageToNobody(t *testing.T) {
	w := Solo()
	defer w.Close()
	for _, to := range []int{-1, 1} {
		if err := Send(t.Context(), w, []int32{1}, to, 0); err == nil {
			t.Errorf("a message to rank %d was taken", to)
		}
	}
}

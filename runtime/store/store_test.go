package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("the job's secret")

// serve starts a server and returns it with a way to make clients.
func serve(t *testing.T) (*Server, func() *Client) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, secret)
	t.Cleanup(func() { s.Close() })
	return s, func() *Client {
		t.Helper()
		c, err := Dial(t.Context(), s.Addr().String(), secret)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestVerbs(t *testing.T) {
	_, dial := serve(t)
	a, b, ctx := dial(), dial(), t.Context()
	if err := a.Set(ctx, "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(b.Get(ctx, "k")); string(got) != "v" {
		t.Errorf("get: %q", got)
	}
	for i, want := range []int64{5, 3, 3} {
		if got := must[int64](t)(b.Add(ctx, "n", []int64{5, -2, 0}[i])); got != want {
			t.Errorf("add %d: %d, want %d", i, got, want)
		}
	}
	if got := must[[]byte](t)(a.Get(ctx, "n")); string(got) != "3" {
		t.Errorf("number is kept as %q, want decimal", got)
	}
	if _, err := a.Add(ctx, "k", 1); err == nil || !strings.Contains(err.Error(), "no number") {
		t.Errorf("adding to text: %v", err)
	}
	if got := must[[]string](t)(a.Keys(ctx, "")); !slices.Equal(got, []string{"k", "n"}) {
		t.Errorf("keys: %q", got)
	}
	if !must[bool](t)(a.Delete(ctx, "k")) || must[bool](t)(a.Delete(ctx, "k")) {
		t.Error("delete should find k once")
	}
	if got := must[[]string](t)(a.Keys(ctx, "k")); len(got) != 0 {
		t.Errorf("keys after delete: %q", got)
	}
}

func TestCompareAndSet(t *testing.T) {
	_, dial := serve(t)
	c, ctx := dial(), t.Context()
	steps := []struct {
		old, value  []byte
		wantCurrent []byte
		wantSwapped bool
	}{
		{[]byte{}, []byte("x"), nil, false}, // absent is not empty
		{[]byte("y"), []byte("x"), nil, false},
		{nil, []byte{}, []byte{}, true},
		{nil, []byte("x"), []byte{}, false}, // empty is not absent
		{[]byte{}, []byte("x"), []byte("x"), true},
		{[]byte("z"), []byte("w"), []byte("x"), false},
	}
	for i, s := range steps {
		current, swapped, err := c.CompareAndSet(ctx, "k", s.old, s.value)
		if err != nil || swapped != s.wantSwapped || !bytes.Equal(current, s.wantCurrent) || (current == nil) != (s.wantCurrent == nil) {
			t.Errorf("step %d: %q %v %v, want %q %v", i, current, swapped, err, s.wantCurrent, s.wantSwapped)
		}
	}
}

// TestOneConnectionManyWaits has a thousand gets wait on one connection while
// the same connection sets their keys.
func TestOneConnectionManyWaits(t *testing.T) {
	_, dial := serve(t)
	c, ctx := dial(), t.Context()
	var wg sync.WaitGroup
	const n = 1000
	for i := range n {
		wg.Go(func() {
			got, err := c.Get(ctx, fmt.Sprint("key", i))
			if err != nil || string(got) != fmt.Sprint("value", i) {
				t.Errorf("get %d: %q, %v", i, got, err)
			}
		})
	}
	for i := range n {
		if err := c.Set(ctx, fmt.Sprint("key", i), []byte(fmt.Sprint("value", i))); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// TestAddIsAtomic counts with many clients; every sum must be seen exactly once.
func TestAddIsAtomic(t *testing.T) {
	_, dial := serve(t)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[int64]int{}
	)
	for range 4 {
		c := dial()
		for range 4 {
			wg.Go(func() {
				for range 25 {
					n, err := c.Add(t.Context(), "n", 1)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					seen[n]++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for i := int64(1); i <= 400; i++ {
		if seen[i] != 1 {
			t.Fatalf("sum %d was returned %d times", i, seen[i])
		}
	}
}

func TestWaitNeedsAllKeysAtOnce(t *testing.T) {
	s, dial := serve(t)
	a, b, ctx := dial(), dial(), t.Context()
	done := make(chan error, 1)
	go func() { done <- a.Wait(ctx, "x", "y") }()
	s.untilWaiting(t, 1)
	for _, err := range []error{b.Set(ctx, "x", nil), second(b.Delete(ctx, "x")), b.Set(ctx, "y", nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Fatalf("wait returned %v though x is gone", err)
	default:
	}
	if err := b.Set(ctx, "x", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := a.Wait(ctx); err != nil {
		t.Errorf("waiting for nothing: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

// untilWaiting returns when n requests wait in the table. The test only: it
// yields to the server's goroutines in between.
func (s *Server) untilWaiting(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		s.table.mu.Lock()
		waiting := map[*waiter]bool{}
		for _, ws := range s.table.waiters {
			for w := range ws {
				waiting[w] = true
			}
		}
		s.table.mu.Unlock()
		if len(waiting) == n {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("test ended")
		}
	}
}

func TestWatchSeesEveryState(t *testing.T) {
	_, dial := serve(t)
	a, b, ctx := dial(), dial(), t.Context()
	change := []func() error{
		func() error { return b.Set(ctx, "k", []byte("1")) },
		func() error { return b.Set(ctx, "k", []byte("1")) }, // the same value again is a change
		func() error { return second(b.Delete(ctx, "k")) },
		func() error { return b.Set(ctx, "k", nil) },
	}
	want := []string{"absent", "1", "1", "absent", ""}
	var got []string
	for state, err := range a.Watch(ctx, "k") {
		if err != nil {
			t.Fatal(err)
		}
		text := string(state.Value)
		if !state.Present {
			text = "absent"
		}
		got = append(got, text)
		if len(got) > len(change) {
			break
		}
		if err := change[len(got)-1](); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("watched %q, want %q", got, want)
	}
}

func TestPrefix(t *testing.T) {
	_, dial := serve(t)
	c, ctx := dial(), t.Context()
	g := c.Prefix("gen-1/").Prefix("spmd/")
	if err := g.Set(ctx, "addr", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(ctx, "addr"); err != nil {
		t.Fatal(err)
	}
	if got := must[[]string](t)(c.Keys(ctx, "")); !slices.Equal(got, []string{"gen-1/spmd/addr"}) {
		t.Errorf("keys of the store: %q", got)
	}
	if got := must[[]string](t)(g.Keys(ctx, "a")); !slices.Equal(got, []string{"addr"}) {
		t.Errorf("keys of the view: %q", got)
	}
}

func TestContextEndsAWait(t *testing.T) {
	s, dial := serve(t)
	c := dial()
	cause := errors.New("generation is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 2)
	go func() { done <- second(c.Get(ctx, "never")) }()
	go func() { done <- c.Wait(ctx, "never", "ever") }()
	s.untilWaiting(t, 2)
	cancel(cause)
	for range 2 {
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v, want the context's cause", err)
		}
	}
	s.untilWaiting(t, 0) // the server forgot them too
	if err := c.Set(t.Context(), "k", nil); err != nil {
		t.Errorf("the connection broke: %v", err)
	}
}

func TestServerCloseFailsWaits(t *testing.T) {
	s, dial := serve(t)
	c := dial()
	done := make(chan error, 1)
	go func() { done <- second(c.Get(t.Context(), "never")) }()
	s.untilWaiting(t, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("waiting get: %v", err)
	}
	if err := c.Set(t.Context(), "k", nil); err == nil {
		t.Error("set worked without a server")
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestClientCloseForgetsWaits(t *testing.T) {
	s, dial := serve(t)
	c := dial()
	done := make(chan error, 1)
	go func() { done <- second(c.Get(t.Context(), "never")) }()
	s.untilWaiting(t, 1)
	c.Close()
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("waiting get: %v", err)
	}
	s.untilWaiting(t, 0)
}

// TestSlowClientHoldsUpNobody reads nothing of 64 MiB of answers.
func TestSlowClientHoldsUpNobody(t *testing.T) {
	s, dial := serve(t)
	c, ctx := dial(), t.Context()
	if err := c.Set(ctx, "big", make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
	slow, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if err := introduce(slow, secret); err != nil {
		t.Fatal(err)
	}
	for id := range uint32(8) {
		frame, err := request{op: opGet, id: id, keys: []string{"big"}}.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := slow.Write(frame); err != nil {
			t.Fatal(err)
		}
	}
	if got := must[[]byte](t)(c.Get(ctx, "big")); len(got) != 8<<20 {
		t.Errorf("got %d bytes", len(got))
	}
}

// TestDialWaitsForTheServer dials a port that is bound but not served yet.
func TestDialWaitsForTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cause := errors.New("waited long enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, addr, secret)
		done <- err
	}()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("dial with an ended context: %v", err)
	}
	connected := make(chan *Client, 1)
	go func() {
		c, err := Dial(t.Context(), addr, secret)
		if err != nil {
			t.Error(err)
		}
		connected <- c
	}()
	l, err = net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, secret)
	defer s.Close()
	if c := <-connected; c != nil {
		c.Close()
	}
}

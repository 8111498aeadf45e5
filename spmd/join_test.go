package spmd

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestJoinRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"size":      {Size: 0},
		"rank":      {Size: 2, Rank: 2, Store: newMapStore()},
		"store":     {Size: 2},
		"transport": {Size: 1, Transport: "pigeon"},
		"timeout":   {Size: 1, Timeout: -1},
		"local":     {Size: 1, LocalRank: 1, LocalSize: 1},
	} {
		if w, err := Join(t.Context(), c); err == nil {
			t.Errorf("%s: joined %v", name, w)
		}
	}
}

// TestSoloHoldsNothing counts descriptors and goroutines.
func TestSoloHoldsNothing(t *testing.T) {
	count := func() (files, goroutines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries), runtime.NumGoroutine()
	}
	f0, g0 := count()
	w, err := Join(t.Context(), Config{Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{2}
	k := AllReduceAsync(w, x, Sum)
	r, err := NewGradientReducer(t.Context(), w, 8)
	if err != nil {
		t.Fatal(err)
	}
	if f, g := count(); f != f0 || g != g0 {
		t.Errorf("%d files and %d goroutines, before %d and %d", f, g, f0, g0)
	}
	if err := errors.Join(k.Wait(t.Context()), r.Close(), w.Close()); err != nil || w.Size() != 1 {
		t.Error(err)
	}
}

// TestWorldsLeaveNothing joins, works and closes over each transport: all
// descriptors are given back, and no shared memory has a name.
func TestWorldsLeaveNothing(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	joinAndLeave := func(adjust func(*Config)) {
		succeed(t, joined(t, 4, adjust), func(w *World) error { return w.Barrier(t.Context()) })
	}
	joinAndLeave(transport("tcp")) // the runtime's poller opens its own
	before := files()
	for _, adjust := range []func(*Config){transport("shm"), transport("tcp"), twoHosts} {
		joinAndLeave(adjust)
		if n := files(); n != before {
			t.Errorf("%d open files, before %d", n, before)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "memfd:spmd") {
		t.Errorf("segments are still mapped (%v)", err)
	}
}

func TestLocalPlaces(t *testing.T) {
	succeed(t, joined(t, 4, twoHosts), func(w *World) error {
		if w.LocalRank() != w.Rank()%2 || w.LocalSize() != 2 {
			t.Errorf("rank %d: local %d of %d", w.Rank(), w.LocalRank(), w.LocalSize())
		}
		return nil
	})
}

// failTogether returns the errors of ranks that cannot join.
func failTogether(t *testing.T, configs []Config) []error {
	t.Helper()
	errs := make([]error, len(configs))
	var wg sync.WaitGroup
	for r, c := range configs {
		wg.Go(func() {
			w, err := Join(t.Context(), c)
			if errs[r] = err; err == nil {
				_ = w.Close()
			}
		})
	}
	wg.Wait()
	return errs
}

func TestJoinFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		adjust func(c *Config)
		want   string
	}{
		{"shm between hosts", func(c *Config) { c.Transport = "shm"; twoHosts(c) }, "another host"},
		{"no secret", func(c *Config) { c.Transport, c.Secret = "tcp", nil }, "secret"},
		{"two secrets", func(c *Config) { c.Transport = "tcp"; c.Secret = append(c.Secret, byte(c.Rank)) }, "secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := newMapStore()
			configs := make([]Config, 2)
			for r := range configs {
				configs[r] = Config{Rank: r, Size: 2, Store: store, Secret: []byte("s"), Timeout: 500 * time.Millisecond}
				c.adjust(&configs[r])
			}
			errs := failTogether(t, configs)
			if errs[0] == nil || errs[1] == nil || !strings.Contains(errs[1].Error(), c.want) {
				t.Errorf("got %v; %v", errs[0], errs[1])
			}
		})
	}
	t.Run("nobody else comes", func(t *testing.T) {
		_, err := Join(t.Context(), Config{Rank: 0, Size: 2, Store: newMapStore(), Timeout: 20 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "not all ranks came") || !strings.Contains(err.Error(), "rank 1") {
			t.Errorf("got %v", err)
		}
	})
}

// TestStrangerAtTheDoor talks nonsense to a listener, and holds a connection
// open in silence, while the ranks meet.
func TestStrangerAtTheDoor(t *testing.T) {
	store := newMapStore()
	var wg sync.WaitGroup
	var conns []net.Conn
	wg.Go(func() {
		text, err := store.Get(t.Context(), "spmd/0/rank/0")
		if err != nil {
			t.Error(err)
			return
		}
		c, err := parseCard(text)
		if err != nil {
			t.Error(err)
			return
		}
		for _, say := range []string{"", "GET / HTTP/1.1\r\nHost: example.org and some more to fill the greeting\r\n\r\n"} {
			conn, err := net.Dial("tcp", c.Addresses[len(c.Addresses)-1])
			if err != nil {
				continue // the ranks were faster
			}
			_, _ = conn.Write([]byte(say))
			conns = append(conns, conn)
		}
	})
	worlds := joined(t, 2, func(c *Config) { c.Store, c.Transport = store, "tcp" })
	succeed(t, worlds, func(w *World) error { return w.Barrier(t.Context()) })
	wg.Wait()
	for _, c := range conns {
		c.Close()
	}
}

// TestGenerations meets twice through one Store.
func TestGenerations(t *testing.T) {
	store := newMapStore()
	for g := range 2 {
		worlds := joined(t, 2, func(c *Config) { c.Store, c.Generation = store, g })
		succeed(t, worlds, func(w *World) error { return w.Barrier(context.Background()) })
	}
}

package spmd

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) != "" {
		os.Exit(rankProcess())
	}
	goleak.VerifyTestMain(m)
}

// together runs f on every rank at once and closes the Worlds.
func together(t *testing.T, worlds []*World, f func(w *World) error) []error {
	t.Helper()
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for i, w := range worlds {
		wg.Go(func() {
			errs[i] = f(w)
			if err := w.Close(); err != nil {
				t.Errorf("close rank %d: %v", w.Rank(), err)
			}
		})
	}
	wg.Wait()
	return errs
}

// succeed is together for what must not fail.
func succeed(t *testing.T, worlds []*World, f func(w *World) error) {
	t.Helper()
	for r, err := range together(t, worlds, f) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// mapStore is a Store in memory.
type mapStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	changed chan struct{}
}

func newMapStore() *mapStore {
	return &mapStore{values: map[string][]byte{}, changed: make(chan struct{})}
}

func (s *mapStore) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

func (s *mapStore) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		s.mu.Lock()
		v, ok := s.values[key]
		changed := s.changed
		s.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// joined returns n ranks that met through Join; adjust may change each one's
// Config.
func joined(t *testing.T, n int, adjust func(c *Config)) []*World {
	t.Helper()
	store := newMapStore()
	worlds, errs := make([]*World, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			c := Config{Rank: r, Size: n, Store: store, Secret: []byte("open sesame"), Timeout: time.Minute}
			adjust(&c)
			worlds[r], errs[r] = Join(t.Context(), c)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return worlds
}

func transport(name string) func(c *Config) {
	return func(c *Config) { c.Transport = name }
}

// twoHosts pretends that the upper half of the ranks is elsewhere.
func twoHosts(c *Config) { c.HostID = fmt.Sprint("host", 2*c.Rank/c.Size) }

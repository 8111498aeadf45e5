package spmd

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// socketStore is a Store over a Unix socket: one request and one answer in JSON
// for each connection.
type socketStore string

type storeRequest struct {
	Set   bool
	Key   string
	Value []byte
}

func (s socketStore) ask(ctx context.Context, q storeRequest) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", string(s))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return nil, err
	}
	var answer []byte
	err = json.NewDecoder(conn).Decode(&answer)
	return answer, err
}

func (s socketStore) Set(ctx context.Context, key string, value []byte) error {
	_, err := s.ask(ctx, storeRequest{Set: true, Key: key, Value: value})
	return err
}

func (s socketStore) Get(ctx context.Context, key string) (value []byte, err error) {
	return s.ask(ctx, storeRequest{Key: key})
}

// serveSocketStore serves a mapStore until the test ends.
func serveSocketStore(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "store")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	store := newMapStore()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				var q storeRequest
				if json.NewDecoder(conn).Decode(&q) != nil {
					return
				}
				if q.Set {
					_ = store.Set(ctx, q.Key, q.Value)
				} else {
					q.Value, _ = store.Get(ctx, q.Key)
				}
				_ = json.NewEncoder(conn).Encode(q.Value)
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		wg.Wait()
	})
	return path
}

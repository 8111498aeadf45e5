package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"syscall"
	"time"
)

// Client is a connection to a Server. All methods may be called concurrently;
// a call that waits holds up no other. Contexts bound every call; when one ends,
// the call returns its cause. Values passed in are not kept, values returned
// belong to the caller.
type Client struct {
	link   *link
	prefix string
}

// Dial connects to the server at addr and proves itself to it, and it to us. A
// refused connection is tried again until ctx ends: the server's process may
// not have got that far.
func Dial(ctx context.Context, addr string, secret []byte) (*Client, error) {
	conn, err := connect(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial store %s: %w", addr, err)
	}
	hangUp := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err = introduce(conn, secret)
	if !hangUp() {
		err = context.Cause(ctx)
	} else if err != nil && !errors.Is(err, errProof) && !errors.Is(err, errMagic) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("dial store %s: %w", addr, err)
	}
	conn.SetDeadline(time.Time{})
	return &Client{link: newLink(conn)}, nil
}

// connect dials, again after a refusal; a refused port tells nobody when it opens.
func connect(ctx context.Context, addr string) (net.Conn, error) {
	var dialer net.Dialer
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		retry := time.NewTimer(pause)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return nil, fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
	}
}

// Close ends the connection, also for views made by Prefix. Calls in flight
// return ErrClosed. It may be called repeatedly.
func (c *Client) Close() error {
	c.link.close()
	return nil
}

// Prefix is a view of the store whose keys all begin with p. It shares the connection.
func (c *Client) Prefix(p string) *Client { return &Client{c.link, c.prefix + p} }

func (c *Client) call(ctx context.Context, r request, what string) (response, error) {
	for i, k := range r.keys {
		r.keys[i] = c.prefix + k
	}
	res, err := c.link.call(ctx, r)
	if err != nil && len(r.keys) > 0 {
		return res, fmt.Errorf("store: %s %q: %w", what, strings.Join(r.keys, " "), err)
	}
	return res, err
}

// Set puts value under key.
func (c *Client) Set(ctx context.Context, key string, value []byte) error {
	_, err := c.call(ctx, request{op: opSet, keys: []string{key}, value: value}, "set")
	return err
}

// Get returns the value of key, waiting until there is one.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	res, err := c.call(ctx, request{op: opGet, keys: []string{key}}, "get")
	return res.value, err
}

// Add adds delta to the decimal number under key, 0 if absent, and returns the
// sum. It fails when the value is no number.
func (c *Client) Add(ctx context.Context, key string, delta int64) (int64, error) {
	res, err := c.call(ctx, request{op: opAdd, keys: []string{key}, delta: delta}, "add to")
	return res.number, err
}

// CompareAndSet puts value under key if its current value is old; a nil old
// expects the key to be absent. It returns the value that the key has now
// (nil: absent) and whether that is ours.
func (c *Client) CompareAndSet(ctx context.Context, key string, old, value []byte) (current []byte, swapped bool, err error) {
	res, err := c.call(ctx, request{op: opCompareAndSet, keys: []string{key}, hasOld: old != nil, old: old, value: value}, "compare and set")
	if !res.present {
		return nil, res.yes, err
	}
	return res.value, res.yes, err
}

// Delete removes key and reports whether it was there.
func (c *Client) Delete(ctx context.Context, key string) (bool, error) {
	res, err := c.call(ctx, request{op: opDelete, keys: []string{key}}, "delete")
	return res.yes, err
}

// Wait returns when all keys are there at once.
func (c *Client) Wait(ctx context.Context, keys ...string) error {
	_, err := c.call(ctx, request{op: opWait, keys: append([]string(nil), keys...)}, "wait for")
	return err
}

// Keys returns the keys that begin with prefix, sorted.
func (c *Client) Keys(ctx context.Context, prefix string) ([]string, error) {
	res, err := c.call(ctx, request{op: opKeys, keys: []string{prefix}}, "list")
	for i, k := range res.keys {
		res.keys[i] = strings.TrimPrefix(k, c.prefix)
	}
	return res.keys, err
}

// State is what Watch tells of a key.
type State struct {
	Value   []byte // nil when not Present
	Present bool
}

// Watch yields the state of key now, even if it is absent, and then again after
// changes, until the loop is left, ctx ends or the connection fails; the latter
// two yield an error last. Changes that follow each other quicker than the loop
// runs are seen as one: the newest state always arrives.
func (c *Client) Watch(ctx context.Context, key string) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		var known uint64
		for {
			res, err := c.call(ctx, request{op: opWatch, keys: []string{key}, after: known}, "watch")
			if err != nil {
				yield(State{}, err)
				return
			}
			known = res.revision
			state := State{Present: res.present}
			if res.present {
				state.Value = res.value
			}
			if !yield(state, nil) {
				return
			}
		}
	}
}

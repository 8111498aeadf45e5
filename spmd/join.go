package spmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Store is how ranks find each other. Its methods may be called concurrently.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	// Get waits until the key is there or ctx ends.
	Get(ctx context.Context, key string) ([]byte, error)
}

// Config is a rank's place in its World.
type Config struct {
	Rank, Size           int
	LocalRank, LocalSize int           // on the host; both 0: found out in Join
	Store                Store         // unused when Size is 1
	Generation           int           // distinguishes Worlds that use one Store one after the other; peers of another generation are refused
	Secret               []byte        // proves to peers that a TCP connection belongs here; needed where there is TCP
	Timeout              time.Duration // of each operation, and of Join; 0: DefaultTimeout
	Transport            string        // "auto" or "": shared memory within a host, TCP between; "shm"; "tcp"

	Flight *Flight // records the collectives of the World and of its children; nil: nothing does

	Host    string // the name that World.Host returns; "": the system's
	HostID  string // ranks of equal HostID share memory; "": found out
	Address string // where peers reach this host by TCP; "": all its addresses are tried
}

func (c *Config) validate() error {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("there is no rank %d in a world of %d", c.Rank, c.Size)
	case c.LocalRank < 0 || c.LocalSize > 0 && c.LocalRank >= c.LocalSize:
		return fmt.Errorf("there is no local rank %d among %d", c.LocalRank, c.LocalSize)
	case c.Size > 1 && c.Store == nil:
		return errors.New("a world of several ranks needs a store")
	case c.Timeout < 0:
		return fmt.Errorf("the timeout is negative: %v", c.Timeout)
	}
	switch c.Transport {
	case "", "auto", "shm", "tcp":
		return nil
	}
	return fmt.Errorf("there is no transport %q: choose auto, shm or tcp", c.Transport)
}

// Join meets the other ranks and returns once all are connected. Each rank of
// a World of several publishes one card in the Store, under a key that begins
// with the generation.
func Join(ctx context.Context, c Config) (*World, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Host == "" {
		c.Host = hostName()
	}
	w := newWorld(c.Rank, c.Size)
	w.host, w.timeout = c.Host, c.Timeout
	w.generation, w.flight = c.Generation, c.Flight
	w.placeLocally(c.LocalRank, max(c.LocalSize, 1))
	if c.Size == 1 {
		return w, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("not all ranks came within %v", c.Timeout))
	defer cancel()
	if err := join(ctx, c, w); err != nil {
		return nil, fmt.Errorf("rank %d: join: %w", c.Rank, err)
	}
	return w, nil
}

func join(ctx context.Context, c Config, w *World) error {
	if c.HostID == "" {
		id, err := hostID()
		if err != nil {
			return err
		}
		c.HostID = id
	}
	s, err := openSite(c, c.Rank, c.Size)
	if err != nil {
		return err
	}
	cards, err := tradeCards(ctx, c, s.card)
	if err != nil {
		s.close()
		return err
	}
	if c.LocalSize == 0 {
		w.placeLocally(locate(cards, c.Rank))
	}
	w.splits = &splitSites{config: c}
	return s.enter(ctx, w, cards)
}

// tradeCards publishes this rank's card and reads all others'.
func tradeCards(ctx context.Context, c Config, mine card) ([]card, error) {
	key := func(rank int) string { return fmt.Sprintf("spmd/%d/rank/%d", c.Generation, rank) }
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	if err := c.Store.Set(ctx, key(c.Rank), text); err != nil {
		return nil, fmt.Errorf("publish this rank's card: %w", err)
	}
	cards := make([]card, c.Size)
	for r := range cards {
		text, err := c.Store.Get(ctx, key(r))
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause // "not all ranks came" says more than "deadline exceeded"
		}
		if err != nil {
			return nil, fmt.Errorf("read rank %d's card: %w", r, err)
		}
		if cards[r], err = parseCard(text); err != nil {
			return nil, fmt.Errorf("read rank %d's card: %w", r, err)
		}
	}
	return cards, nil
}

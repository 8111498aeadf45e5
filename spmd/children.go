package spmd

import (
	"context"
	"encoding/json"
	"fmt"
)

// splitSites makes the children of Worlds between processes.
type splitSites struct{ config Config }

func (f *splitSites) split(ctx context.Context, w *World, _ uint64, rank int, members []int) (*World, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("not all ranks connected within %v", w.timeout))
	defer cancel()
	var s *site
	var mine card
	if len(members) > 1 {
		var err error
		if s, err = openSite(f.config, rank, len(members)); err != nil {
			mine.Error = err.Error()
		} else {
			mine = s.card
		}
	}
	cards, err := f.trade(ctx, w, mine, members)
	if err == nil && rank >= 0 {
		var child *World
		if child, err = f.enter(ctx, s, rank, cards); err == nil {
			return child, nil
		}
	} else if s != nil {
		s.close()
	}
	if err != nil {
		err = fmt.Errorf("rank %d: split: %w", w.rank, err)
	}
	return nil, err
}

// trade sends everybody's card to everybody through the parent, and returns
// those of the members.
func (f *splitSites) trade(ctx context.Context, w *World, mine card, members []int) ([]card, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := allGatherBytes(ctx, w, text)
	if err != nil {
		return nil, err
	}
	cards := make([]card, len(members))
	for i, r := range members {
		if cards[i], err = parseCard(all[r]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return cards, nil
}

func (f *splitSites) enter(ctx context.Context, s *site, rank int, cards []card) (*World, error) {
	child := newWorld(rank, len(cards))
	if s == nil {
		return child, nil
	}
	child.placeLocally(locate(cards, rank))
	child.splits = f
	return child, s.enter(ctx, child, cards)
}

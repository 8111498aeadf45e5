package spmd

import (
	"cmp"
	"context"
	"slices"
)

// Split divides the World by color: the ranks that give the same one form a
// World, ordered by key and then by rank here. A rank with a negative color
// gets nil. All ranks must call it. The new World is independent: its
// collectives may run at the same time as this one's, from another goroutine,
// and it must be closed on its own.
func (w *World) Split(ctx context.Context, color, key int) (*World, error) {
	colors, keys := make([]int64, w.size), make([]int64, w.size)
	if err := AllGather(ctx, w, colors, []int64{int64(color)}); err != nil {
		return nil, err
	}
	if err := AllGather(ctx, w, keys, []int64{int64(key)}); err != nil {
		return nil, err
	}
	members, rank := group(colors, keys, w.rank)
	nth := w.splitCount.Add(1)
	var child *World
	var err error
	switch {
	case w.size > 1:
		child, err = w.splits.split(ctx, w, nth, rank, members)
	case rank == 0:
		child = newWorld(0, 1)
	}
	if child != nil {
		child.host, child.timeout = w.host, w.timeout
		child.generation, child.flight = w.generation, w.flight
	}
	return child, err
}

// group returns which ranks share this one's color, in the new order, and this
// rank's place among them (-1: none).
func group(colors, keys []int64, rank int) (members []int, place int) {
	if colors[rank] < 0 {
		return nil, -1
	}
	for r, c := range colors {
		if c == colors[rank] {
			members = append(members, r)
		}
	}
	slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	return members, slices.Index(members, rank)
}

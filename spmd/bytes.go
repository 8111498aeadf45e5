package spmd

import (
	"context"
	"encoding/json"
	"fmt"
)

// GatherBytes returns every rank's b, by rank, at root, and nil elsewhere. They
// may differ in length.
func GatherBytes(ctx context.Context, w *World, b []byte, root int) ([][]byte, error) {
	var lengths []int64
	if w.rank == root {
		lengths = make([]int64, w.size)
	}
	if err := Gather(ctx, w, lengths, []int64{int64(len(b))}, root); err != nil {
		return nil, err
	}
	var all [][]byte
	t := task{head: header{kind: kindGather, dtype: byteType, root: int32(root)}}
	t.run = func(o *operation) error {
		if w.rank != root {
			o.send(root, b)
			return nil
		}
		all = make([][]byte, w.size)
		for r, n := range lengths {
			all[r] = make([]byte, n)
		}
		copy(all[root], b)
		return o.receiveAll(all)
	}
	if err := w.do(ctx, t); err != nil {
		return nil, err
	}
	return all, nil
}

// BroadcastBytes returns root's b on every rank. Elsewhere b is ignored, and
// the result is new memory.
func BroadcastBytes(ctx context.Context, w *World, b []byte, root int) ([]byte, error) {
	length := []int64{int64(len(b))}
	if err := Broadcast(ctx, w, length, root); err != nil {
		return nil, err
	}
	if w.rank != root {
		b = make([]byte, length[0])
	}
	t := task{head: header{kind: kindBroadcast, dtype: byteType, root: int32(root), count: length[0]}}
	t.run = func(o *operation) error { return o.broadcast(b, root) }
	if err := w.do(ctx, t); err != nil {
		return nil, err
	}
	return b, nil
}

// allGatherBytes returns every rank's b, by rank, on every rank.
func allGatherBytes(ctx context.Context, w *World, b []byte) ([][]byte, error) {
	all, err := GatherBytes(ctx, w, b, 0)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if text, err = BroadcastBytes(ctx, w, text, 0); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("read what rank 0 gathered: %w", err)
	}
	return all, nil
}

package spmd

import (
	"context"
	"math"
	"slices"
)

func (c *checker) gatherBytes() (int, error) {
	text := func(r int) []byte { return slices.Repeat([]byte{byte(r + 1)}, 1000*r) }
	all, err := GatherBytes(c.ctx, c.w, text(c.w.rank), 0)
	wrong := 0
	for r, b := range all {
		if !slices.Equal(b, text(r)) {
			wrong++
		}
	}
	return wrong, err
}

func (c *checker) broadcastBytes() (int, error) {
	text := slices.Repeat([]byte("spmd"), 50_001)
	b, err := BroadcastBytes(c.ctx, c.w, text, c.w.size-1)
	if !slices.Equal(b, text) {
		return 1, err
	}
	return 0, err
}

// messages sends two messages to the right, received in the other order.
func (c *checker) messages() (int, error) {
	const n = 100_003
	to, from := (c.w.rank+1)%c.w.size, (c.w.rank+c.w.size-1)%c.w.size
	var works []*Work
	for tag := range 2 {
		works = append(works, SendAsync(c.w, filled[float64](n, func(i int) int { return origin(c.w.rank, tag, i) }), to, tag))
	}
	wrong := 0
	for tag := 1; tag >= 0; tag-- {
		x := make([]float64, n)
		if err := Recv(c.ctx, c.w, x, from, tag); err != nil {
			return wrong, err
		}
		wrong += differences(x, func(i int) int { return origin(from, tag, i) })
	}
	return wrong, waitAll(c.ctx, works)
}

func waitAll(ctx context.Context, works []*Work) error {
	for _, k := range works {
		if err := k.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) background() (int, error) {
	var works []*Work
	var xs [][]int64
	for k := range 4 {
		x := filled[int64](5000, func(i int) int { return addend(Sum, c.w.size, c.w.rank, i+k) })
		works, xs = append(works, AllReduceAsync(c.w, x, Sum)), append(xs, x)
	}
	err := waitAll(c.ctx, works)
	wrong := 0
	for k, x := range xs {
		wrong += differences(x, func(i int) int { return outcome(Sum, c.w.size, i+k) })
	}
	return wrong, err
}

// split checks the World of every other rank, in reverse order.
func (c *checker) split() (wrong int, err error) {
	half, err := c.w.Split(c.ctx, c.w.rank%2, -c.w.rank)
	if err != nil {
		return 0, err
	}
	x := make([]int32, half.size)
	err = AllGather(c.ctx, half, x, []int32{int32(c.w.rank)})
	for i := 1; i < len(x); i++ {
		if x[i] != x[i-1]-2 {
			wrong++
		}
	}
	if e := half.Close(); err == nil {
		err = e
	}
	return wrong, err
}

// gradient checks the reducer against a plain recursion over all shards.
func (c *checker) gradient() (wrong int, err error) {
	shards := 2
	for shards < 2*c.w.size {
		shards *= 2
	}
	r, err := NewGradientReducer(c.ctx, c.w, shards)
	if err != nil {
		return 0, err
	}
	const n = 70_001
	var partial [][]float32
	for _, node := range Cover(Shards(shards, c.w.size, c.w.rank)) {
		partial = append(partial, subtree(node, n))
	}
	out := make([]float32, n)
	err = r.Reduce(partial, out).Wait(c.ctx)
	level := 0
	for 1<<level < shards {
		level++
	}
	for i, v := range subtree(Node{Level: level}, n) {
		if math.Float32bits(v) != math.Float32bits(out[i]) {
			wrong++
		}
	}
	if e := r.Close(); err == nil {
		err = e
	}
	return wrong, err
}

// subtree returns a node's sum of made-up shard gradients whose float32 sums
// depend on the order of addition.
func subtree(n Node, length int) []float32 {
	x := make([]float32, length)
	if n.Level == 0 {
		for i := range x {
			h := uint32(i*2654435761) ^ uint32((n.Index+1)*40503)
			h ^= h >> 15
			h *= 2246822519
			h ^= h >> 13
			x[i] = float32(int32(h)) / (1 << 20) // 24 of 32 bits survive
		}
		return x
	}
	left, right := subtree(Node{n.Level - 1, 2 * n.Index}, length), subtree(Node{n.Level - 1, 2*n.Index + 1}, length)
	for i := range x {
		x[i] = left[i] + right[i]
	}
	return x
}

package spmd

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Check runs every collective with every type and reduction on w, with values
// whose results are exact in every type, and reports each by name. All ranks
// must call it; report gets the same names everywhere, and an error on every
// rank when one rank's result is wrong. After an error that breaks the World
// nothing more is checked.
func Check(ctx context.Context, w *World, report func(name string, err error)) {
	c := &checker{ctx: ctx, w: w, report: report}
	c.run("barrier", func() (int, error) { return 0, w.Barrier(ctx) })
	checkType[float32](c)
	checkType[float64](c)
	checkType[int32](c)
	checkType[int64](c)
	checkType[BFloat16](c)
	c.run("gather bytes", c.gatherBytes)
	c.run("broadcast bytes", c.broadcastBytes)
	c.run("send and receive", c.messages)
	c.run("background", c.background)
	c.run("split", c.split)
	c.run("gradient reducer", c.gradient)
}

// checkLengths reach each algorithm, odd sizes and rings that wrap; the last is
// spared for all reductions but Sum.
var checkLengths = []int{1, 1003, 70_003}

type checker struct {
	ctx    context.Context
	w      *World
	report func(string, error)
	broken bool
}

// run reports one check, which returns the number of wrong elements here.
func (c *checker) run(name string, f func() (wrong int, err error)) {
	if c.broken {
		return
	}
	wrong, err := f()
	total := []int64{int64(wrong)}
	if err == nil {
		err = AllReduce(c.ctx, c.w, total, Sum)
	}
	c.broken = err != nil
	if err == nil && total[0] > 0 {
		err = fmt.Errorf("rank %d: %s: %d wrong elements, %d of them here", c.w.rank, name, total[0], wrong)
	}
	c.report(name, err)
}

// number converts a small integer, exactly.
func number[T Number](v int) T {
	if dtypeOf[T]() == bfloat16Type {
		return T(FromFloat32(float32(v)))
	}
	return T(v)
}

// filled returns n elements from a function of their place.
func filled[T Number](n int, value func(i int) int) []T {
	x := make([]T, n)
	fill(x, value)
	return x
}

func fill[T Number](x []T, value func(i int) int) {
	for i := range x {
		x[i] = number[T](value(i))
	}
}

// differences counts the elements of x that are not value's.
func differences[T Number](x []T, value func(i int) int) int {
	wrong := 0
	for i := range x {
		if x[i] != number[T](value(i)) {
			wrong++
		}
	}
	return wrong
}

// addend returns what rank r contributes to element i of a reduction, and
// outcome what must come of it. Sums stay below 2 for each rank, which is exact
// in BFloat16 up to 128 ranks.
func addend(op Op, size, r, i int) int {
	switch op {
	case Product:
		if i%(size+1) == r {
			return 2
		}
		return 1
	case Average:
		return i%7 + 2*r - (size - 1)
	}
	return (i + r) % 3
}

func outcome(op Op, size, i int) int {
	v := addend(op, size, 0, i)
	for r := 1; r < size; r++ {
		a := addend(op, size, r, i)
		switch op {
		case Min:
			v = min(v, a)
		case Max:
			v = max(v, a)
		case Product:
			v *= a
		default:
			v += a
		}
	}
	if op == Average {
		v /= size
	}
	return v
}

func checkType[T Number](c *checker) {
	d := dtypeOf[T]()
	for op := Sum; op <= Average; op++ {
		for _, k := range []struct {
			name  string
			check func(*checker, int, Op) (int, error)
		}{
			{"all-reduce", checkAllReduce[T]},
			{"reduce", checkReduce[T]},
			{"reduce-scatter", checkReduceScatter[T]},
		} {
			lengths := checkLengths
			if op != Sum {
				lengths = lengths[:2]
			}
			c.run(fmt.Sprintf("%s %v %v", k.name, d, op), func() (int, error) {
				return checkLength(lengths, func(n int) (int, error) { return k.check(c, n, op) })
			})
		}
	}
	for _, k := range []struct {
		name  string
		check func(*checker, int) (int, error)
	}{
		{"broadcast", checkBroadcast[T]},
		{"all-gather", checkAllGather[T]},
		{"gather", checkGather[T]},
		{"scatter", checkScatter[T]},
		{"all-to-all", checkAllToAll[T]},
	} {
		c.run(fmt.Sprintf("%s %v", k.name, d), func() (int, error) {
			return checkLength(checkLengths, func(n int) (int, error) { return k.check(c, n) })
		})
	}
}

func checkLength(lengths []int, f func(n int) (int, error)) (wrong int, err error) {
	for _, n := range lengths {
		bad, err := f(n)
		if wrong += bad; err != nil {
			return wrong, err
		}
	}
	return wrong, nil
}

func checkAllReduce[T Number](c *checker, n int, op Op) (int, error) {
	size := c.w.size
	x := filled[T](n, func(i int) int { return addend(op, size, c.w.rank, i) })
	err := AllReduce(c.ctx, c.w, x, op)
	return differences(x, func(i int) int { return outcome(op, size, i) }), err
}

func checkReduce[T Number](c *checker, n int, op Op) (int, error) {
	size, root := c.w.size, n%c.w.size
	mine := func(i int) int { return addend(op, size, c.w.rank, i) }
	x := filled[T](n, mine)
	err := Reduce(c.ctx, c.w, x, op, root)
	if c.w.rank == root {
		return differences(x, func(i int) int { return outcome(op, size, i) }), err
	}
	return differences(x, mine), err
}

func checkReduceScatter[T Number](c *checker, n int, op Op) (int, error) {
	size := c.w.size
	src := filled[T](n*size, func(i int) int { return addend(op, size, c.w.rank, i) })
	dst := make([]T, n)
	err := ReduceScatter(c.ctx, c.w, dst, src, op)
	return differences(dst, func(i int) int { return outcome(op, size, c.w.rank*n+i) }), err
}

// origin is element i of what rank r has for rank to.
func origin(r, to, i int) int { return (31*r + 7*to + i) % 101 }

func checkBroadcast[T Number](c *checker, n int) (int, error) {
	root := n % c.w.size
	x := filled[T](n, func(i int) int { return origin(c.w.rank, 0, i) })
	err := Broadcast(c.ctx, c.w, x, root)
	return differences(x, func(i int) int { return origin(root, 0, i) }), err
}

func checkAllGather[T Number](c *checker, n int) (int, error) {
	dst := make([]T, n*c.w.size)
	err := AllGather(c.ctx, c.w, dst, filled[T](n, func(i int) int { return origin(c.w.rank, 0, i) }))
	return differences(dst, func(i int) int { return origin(i/n, 0, i%n) }), err
}

func checkGather[T Number](c *checker, n int) (int, error) {
	root := n % c.w.size
	var dst []T
	if c.w.rank == root {
		dst = make([]T, n*c.w.size)
	}
	err := Gather(c.ctx, c.w, dst, filled[T](n, func(i int) int { return origin(c.w.rank, 0, i) }), root)
	return differences(dst, func(i int) int { return origin(i/n, 0, i%n) }), err
}

func checkScatter[T Number](c *checker, n int) (int, error) {
	root := n % c.w.size
	var src []T
	if c.w.rank == root {
		src = filled[T](n*c.w.size, func(i int) int { return origin(root, i/n, i%n) })
	}
	dst := make([]T, n)
	err := Scatter(c.ctx, c.w, dst, src, root)
	return differences(dst, func(i int) int { return origin(root, c.w.rank, i) }), err
}

func checkAllToAll[T Number](c *checker, n int) (int, error) {
	src := filled[T](n*c.w.size, func(i int) int { return origin(c.w.rank, i/n, i%n) })
	dst := make([]T, len(src))
	err := AllToAll(c.ctx, c.w, dst, src)
	return differences(dst, func(i int) int { return origin(i/n, c.w.rank, i%n) }), err
}

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

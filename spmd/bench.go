package spmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Benchmarks are the names that Bench knows.
var Benchmarks = []string{"all-reduce", "broadcast", "reduce", "reduce-scatter", "all-gather", "gather", "scatter", "all-to-all", "send-recv", "gradient", "barrier"}

// Bench times a collective on float32 data of about bytes in all (for gather,
// scatter, all-gather, reduce-scatter and all-to-all: of all ranks together).
// It returns the median over iters runs, the slowest rank's at each; algbw =
// bytes/time and busbw = algbw times the share of the data that crosses each
// rank's link, as nccl-tests defines them, both in GB/s; and the number of
// wrong elements on all ranks. All ranks must call it and get the same.
func Bench(ctx context.Context, w *World, name string, bytes, iters int) (median time.Duration, algbw, busbw float64, wrong int, err error) {
	if !slices.Contains(Benchmarks, name) {
		return 0, 0, 0, 0, fmt.Errorf("there is no collective %q: choose one of %s", name, strings.Join(Benchmarks, ", "))
	}
	if bytes < 0 || iters < 1 {
		return 0, 0, 0, 0, fmt.Errorf("bench %s: %d bytes, %d times", name, bytes, iters)
	}
	b := &bench{ctx: ctx, w: w, n: max(bytes/4/w.size, 1)}
	if err := b.prepare(name); err != nil {
		return 0, 0, 0, 0, err
	}
	defer func() { err = b.end(err) }()
	nanos, err := b.measure(iters)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	total := []int64{int64(b.wrong)}
	if err := AllReduce(ctx, w, total, Sum); err != nil {
		return 0, 0, 0, 0, err
	}
	slices.Sort(nanos)
	median = time.Duration(nanos[len(nanos)/2])
	if name != "barrier" {
		algbw = float64(4*b.n*w.size) / float64(max(median, 1))
	}
	return median, algbw, algbw * busFactor(name, w.size), int(total[0]), nil
}

// busFactor follows nccl-tests' doc/PERFORMANCE.md.
func busFactor(name string, size int) float64 {
	n := float64(size)
	switch name {
	case "all-reduce", "gradient":
		return 2 * (n - 1) / n
	case "reduce-scatter", "all-gather", "all-to-all", "gather", "scatter":
		return (n - 1) / n
	}
	return 1
}

// bench is one measurement: run works on fresh values that fill has set, and
// verify counts wrong elements.
type bench struct {
	ctx     context.Context
	w       *World
	n       int // elements of a rank's part
	wrong   int
	reducer *GradientReducer
	fill    func()
	run     func() error
	verify  func() int
}

// measure runs once to warm up, then returns the slowest rank's nanoseconds of
// each further run.
func (b *bench) measure(iters int) ([]int64, error) {
	nanos := make([]int64, iters)
	for i := -1; i < iters; i++ {
		b.fill()
		if err := b.w.Barrier(b.ctx); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := b.run(); err != nil {
			return nil, err
		}
		if i >= 0 {
			nanos[i] = time.Since(start).Nanoseconds()
		}
		b.wrong += b.verify()
	}
	return nanos, AllReduce(b.ctx, b.w, nanos, Max)
}

func (b *bench) end(err error) error {
	if b.reducer != nil {
		if e := b.reducer.Close(); err == nil {
			err = e
		}
	}
	return err
}

func (b *bench) prepare(name string) error {
	ctx, w, n, size := b.ctx, b.w, b.n, b.w.size
	whole, part := make([]float32, n*size), make([]float32, n)
	mine := func(i int) int { return addend(Sum, size, w.rank, i) }
	sum := func(i int) int { return outcome(Sum, size, i) }
	from := func(r int) func(i int) int { return func(i int) int { return origin(r, 0, i) } }
	all := func(i int) int { return origin(i/n, 0, i%n) }
	// set makes the steps of one measurement: values for in, the call, and what
	// out must hold afterwards.
	set := func(in []float32, value func(int) int, run func() error, out []float32, want func(int) int) {
		b.fill = func() { fill(in, value) }
		b.run, b.verify = run, func() int { return differences(out, want) }
	}
	root := w.rank == 0
	switch name {
	case "all-reduce":
		set(whole, mine, func() error { return AllReduce(ctx, w, whole, Sum) }, whole, sum)
	case "broadcast":
		set(whole, from(w.rank), func() error { return Broadcast(ctx, w, whole, 0) }, whole, from(0))
	case "reduce":
		set(whole, mine, func() error { return Reduce(ctx, w, whole, Sum, 0) }, only(root, whole), sum)
	case "reduce-scatter":
		set(whole, mine, func() error { return ReduceScatter(ctx, w, part, whole, Sum) }, part, func(i int) int { return sum(w.rank*n + i) })
	case "all-gather":
		set(part, from(w.rank), func() error { return AllGather(ctx, w, whole, part) }, whole, all)
	case "gather":
		set(part, from(w.rank), func() error { return Gather(ctx, w, whole, part, 0) }, only(root, whole), all)
	case "scatter":
		set(whole, func(i int) int { return origin(0, i/n, i%n) }, func() error { return Scatter(ctx, w, part, whole, 0) }, part, func(i int) int { return origin(0, w.rank, i) })
	case "all-to-all":
		got := make([]float32, n*size)
		set(whole, func(i int) int { return origin(w.rank, i/n, i%n) }, func() error { return AllToAll(ctx, w, got, whole) }, got, func(i int) int { return origin(i/n, w.rank, i%n) })
	case "send-recv":
		got := make([]float32, n*size)
		left := (w.rank + size - 1) % size
		set(whole, from(w.rank), func() error {
			k := SendAsync(w, whole, (w.rank+1)%size, 0)
			if err := Recv(ctx, w, got, left, 0); err != nil {
				return err
			}
			return k.Wait(ctx)
		}, got, from(left))
	case "gradient":
		return b.prepareGradient(whole, set)
	case "barrier":
		set(nil, mine, func() error { return w.Barrier(ctx) }, nil, mine)
	}
	return nil
}

// only returns x where a result is to be verified.
func only(here bool, x []float32) []float32 {
	if here {
		return x
	}
	return nil
}

// prepareGradient times the gradient reducer, with as many shards as ranks where
// that is a power of two, else with the next one.
func (b *bench) prepareGradient(x []float32, set func([]float32, func(int) int, func() error, []float32, func(int) int)) (err error) {
	shards := 1
	for shards < b.w.size {
		shards *= 2
	}
	if b.reducer, err = NewGradientReducer(b.ctx, b.w, shards); err != nil {
		return err
	}
	lo, hi := Shards(shards, b.w.size, b.w.rank)
	nodes := Cover(lo, hi)
	partial := make([][]float32, len(nodes))
	partial[0] = x
	for i := 1; i < len(nodes); i++ {
		partial[i] = make([]float32, len(x)) // zeros: only partial[0] counts
	}
	size, rank := b.w.size, b.w.rank
	set(x, func(i int) int { return addend(Sum, size, rank, i) }, func() error { return b.reducer.Reduce(partial, x).Wait(b.ctx) },
		x, func(i int) int { return outcome(Sum, size, i) })
	return nil
}

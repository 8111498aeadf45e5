package spmd

import (
	"context"
	"fmt"
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

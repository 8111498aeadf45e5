// Package conformance holds a back end against the reference: every operation,
// odd sizes, guarded memory, and the promises of package compute that a
// comparison of results alone would miss: inputs stay as they are, what is
// overwritten never shows through, the same call gives the same bits, later
// tokens never change earlier results. It is an ordinary package, so that
// `ddp selftest` runs it on machines without Go.
package conformance

import (
	"context"
	"fmt"
	"math"

	"ddp/model/compute"
)

// Result is the outcome of one case.
type Result struct {
	Op, Shape string
	MaxErr    float64 // largest deviation, as a share of |want| plus the output's root mean square
	Tolerance float64 // what MaxErr may be
	Err       error   // any other promise that was broken
}

// Pass reports whether the case is as it should be; a NaN error is not.
func (r Result) Pass() bool { return r.Err == nil && r.MaxErr <= r.Tolerance }

// Run holds b against oracle in every case and reports each. It ends early with
// ctx's error. Both back ends must have host memory. It allocates from them
// without bound, so close them afterwards.
func Run(ctx context.Context, b, oracle compute.Backend, report func(Result)) error {
	for _, c := range cases() {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(c.hold(b, oracle))
	}
	for _, check := range []func(compute.Backend) Result{causality, laterNaN, nanShows} {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(check(b))
	}
	return nil
}

// Threads wants the same bits from a and b, back ends of one instruction set
// with different numbers of threads.
func Threads(ctx context.Context, a, b compute.Backend, report func(Result)) error {
	for _, c := range append(cases(), largeCases()...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := Result{Op: c.op, Shape: c.shape}
		outA, outB := c.run(a), c.run(b)
		if i, x := differ(outA.views, outB.views); i >= 0 {
			r.Err = fmt.Errorf("%s differs at %d", c.args[i].name, x)
		} else if outA.value != outB.value {
			r.Err = fmt.Errorf("%v and %v", outA.value, outB.value)
		}
		report(r)
	}
	return nil
}

// role says what an operation may do with an argument.
type role int

const (
	input   role = iota // read only
	output              // overwritten: what was there must not matter
	updated             // read and written
)

// arg is one buffer of a case.
type arg struct {
	name string
	role role
	n    int
	fill func(i int) float32 // nil for outputs
}

// testCase is one call of one operation.
type testCase struct {
	op, shape string
	tolerance float64
	args      []arg
	// call runs the operation on buffers in the order of args; operations that
	// return a number return it.
	call func(b compute.Backend, v []compute.Buffer) float64
}

// hold compares b's results with the oracle's and checks the other promises.
func (c testCase) hold(b, oracle compute.Backend) Result {
	r := Result{Op: c.op, Shape: c.shape, Tolerance: c.tolerance}
	got, again, want := c.run(b), c.run(b), c.run(oracle)
	if r.Err = got.guarded(c.args); r.Err != nil {
		return r
	}
	if i, at := differ(got.views, again.views); i >= 0 {
		r.Err = fmt.Errorf("%s differs at %d when called again", c.args[i].name, at)
		return r
	}
	r.MaxErr = relative(got.value, want.value, math.Abs(want.value))
	for i, a := range c.args {
		g, w := got.views[i].Host(), want.views[i].Host()
		if a.role == input {
			if at := firstDifference(g, w); at >= 0 {
				r.Err = fmt.Errorf("input %s was changed at %d", a.name, at)
				return r
			}
			continue
		}
		r.MaxErr = worse(r.MaxErr, deviation(g, w))
	}
	return r
}

// guard is how many values around each buffer must stay as they are.
const guard = 64

const sentinel = float32(-12345.678)

// outcome is what a call left behind.
type outcome struct {
	bases, views []compute.Buffer
	value        float64
}

// run calls the operation on fresh guarded buffers of b.
func (c testCase) run(b compute.Backend) outcome {
	var o outcome
	for _, a := range c.args {
		base := b.Alloc(a.n + 2*guard)
		host := base.Host()
		for i := range host {
			host[i] = sentinel
		}
		view := base.Slice(guard, guard+a.n)
		for i, h := 0, view.Host(); i < a.n; i++ {
			h[i] = float32(math.NaN())
			if a.fill != nil {
				h[i] = a.fill(i)
			}
		}
		o.bases, o.views = append(o.bases, base), append(o.views, view)
	}
	o.value = c.call(b, o.views)
	return o
}

// guarded reports a write outside a buffer.
func (o outcome) guarded(args []arg) error {
	for i, base := range o.bases {
		host := base.Host()
		for k := range guard {
			if host[k] != sentinel || host[len(host)-1-k] != sentinel {
				return fmt.Errorf("wrote outside %s", args[i].name)
			}
		}
	}
	return nil
}

// differ finds the first buffer and place where a and b have different bits.
func differ(a, b []compute.Buffer) (buffer, at int) {
	for i := range a {
		if at := firstDifference(a[i].Host(), b[i].Host()); at >= 0 {
			return i, at
		}
	}
	return -1, -1
}

func firstDifference(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

// deviation is the largest relative error of got, the output's root mean square
// standing in where want is near 0.
func deviation(got, want []float32) float64 {
	sum := 0.0
	for _, w := range want {
		sum += float64(w) * float64(w)
	}
	rms := math.Sqrt(sum / float64(max(1, len(want))))
	worst := 0.0
	for i := range want {
		worst = worse(worst, relative(float64(got[i]), float64(want[i]), rms))
	}
	return worst
}

func relative(got, want, scale float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / (math.Abs(want) + scale)
}

// worse is the larger error; NaN is the worst.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return math.Max(a, b)
}

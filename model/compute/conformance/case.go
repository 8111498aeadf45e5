package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ddp/model/compute"
)

// role says what an operation may do with an argument.
type role int

const (
	read        role = iota // never written
	overwritten             // what was there must not matter
	updated                 // read and written
)

// arg is one buffer of a case.
type arg struct {
	name string
	role role
	n    int
	fill func(i int) float32 // nil: NaN before the call
}

// in is an argument that is only read.
func in(name string, n int, fill func(int) float32) arg { return arg{name, read, n, fill} }

// out is an argument that is overwritten.
func out(name string, n int) arg { return arg{name, overwritten, n, nil} }

// inout is an argument that is read and written.
func inout(name string, n int, fill func(int) float32) arg { return arg{name, updated, n, fill} }

// testCase is one call of one operation, on buffers in the order of args.
type testCase struct {
	op, shape string
	tolerance float64
	scale     float64 // of the terms that outputs are sums of, for outputs that cancel; see deviation
	args      []arg
	// prepare, where set, computes with b what an input has to come from.
	prepare func(b compute.Backend, v []compute.Buffer)
	call    func(b compute.Backend, v []compute.Buffer)
	// number replaces call where the operation returns one.
	number func(b compute.Backend, v []compute.Buffer) float64
}

// size is the number of values of all arguments.
func (c testCase) size() int {
	n := 0
	for _, a := range c.args {
		n += a.n
	}
	return n
}

// inputs are the values of the arguments before the call.
func (c testCase) inputs() [][]float32 {
	values := make([][]float32, len(c.args))
	for i, a := range c.args {
		values[i] = make([]float32, a.n)
		for k := range values[i] {
			values[i][k] = nan
			if a.fill != nil {
				values[i][k] = a.fill(k)
			}
		}
	}
	return values
}

// hold compares b's results with the oracle's and checks the other promises.
func (c testCase) hold(b, oracle compute.Backend) Result {
	inputs := c.inputs()
	got := c.run(b, inputs)
	c.run(b, c.allNaN()) // nothing of it may stay in memory of b's own
	again, want := c.run(b, inputs), c.run(oracle, inputs)
	r := Result{Op: c.op, Shape: c.shape, Tolerance: c.tolerance}
	if err := c.sameBits(got, again); err != nil {
		r.Err = fmt.Errorf("called again: %w", err)
	}
	r.Err = errors.Join(c.guarded(got), c.unchanged(got), r.Err)
	r.MaxErr = relative(got.number, want.number, math.Abs(want.number))
	for i, a := range c.args {
		if a.role != read {
			r.MaxErr = worse(r.MaxErr, deviation(got.views[i].Host(), want.views[i].Host(), c.scale))
		}
	}
	return r
}

// allNaN are inputs that are not numbers.
func (c testCase) allNaN() [][]float32 {
	values := make([][]float32, len(c.args))
	for i, a := range c.args {
		values[i] = slices.Repeat([]float32{nan}, a.n)
	}
	return values
}

const (
	guard    = 64 // values around each buffer that must stay as they are
	sentinel = float32(-12345.678)
)

// outcome is what a call left behind.
type outcome struct {
	bases, views []compute.Buffer
	before       [][]float32 // of read arguments, after prepare
	number       float64
}

// run calls the operation on fresh guarded buffers of b.
func (c testCase) run(b compute.Backend, inputs [][]float32) outcome {
	var o outcome
	for _, values := range inputs {
		base := b.Alloc(len(values) + 2*guard)
		host := base.Host()
		for i := range guard {
			host[i], host[len(host)-1-i] = sentinel, sentinel
		}
		view := base.Slice(guard, guard+len(values))
		copy(view.Host(), values)
		o.bases, o.views = append(o.bases, base), append(o.views, view)
	}
	o.before = inputs
	if c.prepare != nil {
		c.prepare(b, o.views)
		o.before = make([][]float32, len(inputs))
		for i, v := range o.views {
			o.before[i] = slices.Clone(v.Host())
		}
	}
	if c.number != nil {
		o.number = c.number(b, o.views)
	} else {
		c.call(b, o.views)
	}
	return o
}

// guarded reports a write outside a buffer.
func (c testCase) guarded(o outcome) error {
	for i, base := range o.bases {
		host := base.Host()
		for k := range guard {
			if host[k] != sentinel || host[len(host)-1-k] != sentinel {
				return fmt.Errorf("wrote outside %s", c.args[i].name)
			}
		}
	}
	return nil
}

// unchanged reports an argument that was written though it may only be read.
func (c testCase) unchanged(o outcome) error {
	for i, a := range c.args {
		if a.role != read {
			continue
		}
		if at := firstDifference(o.views[i].Host(), o.before[i]); at >= 0 {
			return fmt.Errorf("input %s was changed at %d", a.name, at)
		}
	}
	return nil
}

// sameBits reports where two outcomes differ.
func (c testCase) sameBits(a, b outcome) error {
	for i := range a.views {
		if at := firstDifference(a.views[i].Host(), b.views[i].Host()); at >= 0 {
			return fmt.Errorf("%s[%d] is %v and %v", c.args[i].name, at, a.views[i].Host()[at], b.views[i].Host()[at])
		}
	}
	if math.Float64bits(a.number) != math.Float64bits(b.number) {
		return fmt.Errorf("%v and %v", a.number, b.number)
	}
	return nil
}

// firstDifference is the first place with different bits, -1 when there is none.
func firstDifference(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

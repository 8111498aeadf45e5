// Package conformance holds a back end against the reference: every operation,
// odd sizes, guarded memory, and the promises of package compute that a
// comparison of results alone would miss: inputs stay as they are, what is
// overwritten never shows through, the same call gives the same bits whatever
// ran before, later tokens never change earlier results, a NaN is never lost.
// It is an ordinary package, so that `ddp selftest` runs it on machines without Go.
package conformance

import (
	"context"
	"fmt"

	"ddp/model/compute"
)

// Result is the outcome of one case.
type Result struct {
	Op, Shape string
	MaxErr    float64 // largest deviation, as a share of |want| plus the output's scale
	Tolerance float64 // what MaxErr may be
	Err       error   // any other promise that was broken
}

// Pass reports whether the case is as it should be; a NaN error is not.
func (r Result) Pass() bool { return r.Err == nil && r.MaxErr <= r.Tolerance }

// Run holds b against oracle in every case and reports each. It ends early with
// ctx's error. Both back ends must have host memory. It allocates a few hundred
// MiB from them, so close them afterwards.
func Run(ctx context.Context, b, oracle compute.Backend, report func(Result)) error {
	var checks []func() Result
	for _, c := range cases() {
		checks = append(checks, func() Result { return c.hold(b, oracle) })
	}
	for _, p := range promises(oracle) {
		checks = append(checks, func() Result { return p.hold(b) })
	}
	for _, check := range checks {
		if err := ctx.Err(); err != nil {
			return err
		}
		report(check())
	}
	return nil
}

// Threads wants the same bits from a and b, back ends of one instruction set
// with different numbers of threads, at small sizes and at ones large enough to
// be shared out. It allocates as Run does.
func Threads(ctx context.Context, a, b compute.Backend, report func(Result)) error {
	if a.Name() != b.Name() || a.ISA() != b.ISA() {
		return fmt.Errorf("compare threads of %s/%s and %s/%s: only those of one instruction set promise the same bits", a.Name(), a.ISA(), b.Name(), b.ISA())
	}
	for _, c := range append(cases(), largeCases()...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		inputs := c.inputs()
		report(Result{Op: c.op, Shape: c.shape, Err: c.sameBits(c.run(a, inputs), c.run(b, inputs))})
	}
	return nil
}

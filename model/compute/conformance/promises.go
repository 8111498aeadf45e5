package conformance

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"ddp/model/compute"
)

// promise is one that takes more than one call to check.
type promise struct {
	op, name string
	check    func(b compute.Backend) error
}

func (p promise) hold(b compute.Backend) Result {
	return Result{Op: p.op, Shape: p.name, Err: p.check(b)}
}

func promises(oracle compute.Backend) []promise {
	return append([]promise{
		{"Alloc", "zeroed, aligned, apart", allocates},
		{"Attention", "causal", func(b compute.Backend) error { return earlierOutputs(b, normal(9, 1)) }},
		{"Attention", "causal, later NaN", func(b compute.Backend) error { return earlierOutputs(b, func(int) float32 { return nan }) }},
		{"AttentionGrad", "causal", earlierQueries},
		{"AttentionGrad", "later positions without gradient", laterSilence},
	}, nanShows(oracle)...)
}

// allocates wants zeroes on 64-byte boundaries that no other allocation shares.
func allocates(b compute.Backend) error {
	var all []compute.Buffer
	for i, n := range []int{1, 15, 16, 17, 4097} {
		x := b.Alloc(n)
		if x.Len() != n {
			return fmt.Errorf("%d values, want %d", x.Len(), n)
		}
		if uintptr(unsafe.Pointer(x.Pointer()))%64 != 0 {
			return fmt.Errorf("%d values at %p", n, x.Pointer())
		}
		if slices.ContainsFunc(x.Host(), func(v float32) bool { return v != 0 }) {
			return fmt.Errorf("%d values are not 0", n)
		}
		for k := range x.Host() {
			x.Host()[k] = float32(i + 1)
		}
		all = append(all, x)
	}
	for i, x := range all {
		if slices.ContainsFunc(x.Host(), func(v float32) bool { return v != float32(i+1) }) {
			return fmt.Errorf("%d values share memory with others", x.Len())
		}
	}
	return nil
}

// nanShows wants, of small cases of every operation, a NaN wherever one input
// value that is NaN makes the oracle's output NaN: a run that diverges is then
// noticed, and no clamp or comparison turns it into a number.
func nanShows(oracle compute.Backend) []promise {
	var list []promise
	for _, c := range cases() {
		if n := c.size(); n >= 50 && n < 10000 {
			list = append(list, promise{c.op, c.shape + ", NaN shows", func(b compute.Backend) error { return c.showsNaN(b, oracle) }})
		}
	}
	return list
}

// showsNaN tries NaN at a few places of each input, one at a time.
func (c testCase) showsNaN(b, oracle compute.Backend) error {
	inputs := c.inputs()
	for i, a := range c.args {
		if a.fill == nil {
			continue
		}
		const places = 5
		for p := range places {
			at := p * (a.n - 1) / (places - 1)
			old := inputs[i][at]
			inputs[i][at] = nan
			got, want := c.run(b, inputs), c.run(oracle, inputs)
			inputs[i][at] = old
			if err := c.missedNaN(got, want); err != nil {
				return fmt.Errorf("NaN at %s[%d]: %w", a.name, at, err)
			}
		}
	}
	return nil
}

// missedNaN reports a number in got where want has a NaN.
func (c testCase) missedNaN(got, want outcome) error {
	for i, w := range want.views {
		for k, v := range w.Host() {
			if g := got.views[i].Host()[k]; v != v && g == g {
				return fmt.Errorf("%s[%d] is %v, want NaN", c.args[i].name, k, g)
			}
		}
	}
	if math.IsNaN(want.number) && !math.IsNaN(got.number) {
		return fmt.Errorf("the result is %v, want NaN", got.number)
	}
	return nil
}

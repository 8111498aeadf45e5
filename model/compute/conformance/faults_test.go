package conformance

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// operations are the names of all methods that compute.
func operations() []string {
	var ops []string
	for m := range reflect.TypeFor[compute.Backend]().Methods() {
		if !slices.Contains([]string{"Name", "ISA", "Alloc", "Close"}, m.Name) {
			ops = append(ops, m.Name)
		}
	}
	return ops
}

// caught reports whether a small case or a promise of op fails b.
func caught(op string, b compute.Backend) bool {
	for _, c := range cases() {
		if c.op == op && c.size() < 10000 && !c.hold(b, ref.New()).Pass() {
			return true
		}
	}
	for _, p := range promises(ref.New()) {
		if p.op == op && !p.hold(b).Pass() {
			return true
		}
	}
	return false
}

// arity is how many outputs and inputs op has at most.
func arity(op string) (outputs, inputs int) {
	b := hooked{ref.New(), func(called string, outs, ins []compute.Buffer, call func()) {
		call()
		if called == op {
			outputs, inputs = max(outputs, len(outs)), max(inputs, len(ins))
		}
	}}
	for _, c := range cases() {
		if c.op == op && c.size() < 1000 {
			c.run(b, c.inputs())
		}
	}
	return outputs, inputs
}

// fault spoils one buffer around a call.
type fault func(target compute.Buffer, call func())

// outputFaults spoil an output.
var outputFaults = map[string]fault{
	"a NaN": func(x compute.Buffer, call func()) {
		call()
		x.Host()[x.Len()-1] = nan
	},
	"a value off by a thousandth": func(x compute.Buffer, call func()) {
		call()
		x.Host()[x.Len()/2] += 1e-3 * float32(1+math.Abs(float64(x.Host()[x.Len()/2])))
	},
	"written past its end": func(x compute.Buffer, call func()) {
		call()
		*(*float32)(unsafe.Add(unsafe.Pointer(x.Pointer()), 4*x.Len())) = 0
	},
	"written before its start": func(x compute.Buffer, call func()) {
		call()
		*(*float32)(unsafe.Add(unsafe.Pointer(x.Pointer()), -4)) = 0
	},
	"left alone": func(x compute.Buffer, call func()) {
		before := slices.Clone(x.Host())
		call()
		copy(x.Host(), before)
	},
	"added to": func(x compute.Buffer, call func()) {
		before := slices.Clone(x.Host())
		call()
		for i, v := range before {
			x.Host()[i] += v
		}
	},
	"a NaN made 0": func(x compute.Buffer, call func()) {
		call()
		for i, v := range x.Host() {
			if v != v {
				x.Host()[i] = 0
			}
		}
	},
}

// harmless are faults that change nothing that the interface promises.
var harmless = map[string]bool{
	"Zero a NaN made 0": true, // it reads nothing
}

func TestFaultsInOutputsAreCaught(t *testing.T) {
	for _, op := range operations() {
		outputs, _ := arity(op)
		for name, spoil := range outputFaults {
			for k := range outputs {
				b := hooked{ref.New(), func(called string, outs, _ []compute.Buffer, call func()) {
					if called != op || k >= len(outs) {
						call()
						return
					}
					spoil(outs[k], call)
				}}
				if !harmless[op+" "+name] && !caught(op, b) {
					t.Errorf("%s: output %d %s was not caught", op, k, name)
				}
			}
		}
	}
}

// TestWrittenInputsAreCaught adds to each input in turn. Where the operation works in
// place the input is the output, which is then wrong.
func TestWrittenInputsAreCaught(t *testing.T) {
	for _, op := range operations() {
		_, inputs := arity(op)
		for k := range inputs {
			b := hooked{ref.New(), func(called string, _, ins []compute.Buffer, call func()) {
				call()
				if called == op && k < len(ins) {
					ins[k].Host()[ins[k].Len()/2]++
				}
			}}
			if !caught(op, b) {
				t.Errorf("%s: a changed input %d was not caught", op, k)
			}
		}
	}
}

// TestMemoryOfEarlierCallsIsCaught: a back end whose padding keeps what ran
// before and multiplies it by 0, and one that differs by a bit every third time.
func TestMemoryOfEarlierCallsIsCaught(t *testing.T) {
	for _, op := range operations() {
		if op == "Zero" || op == "SumSquares" { // no input, no output buffer
			continue
		}
		stale, calls := float32(0), 0
		leaks := hooked{ref.New(), func(called string, outs, _ []compute.Buffer, call func()) {
			call()
			if called == op {
				outs[0].Host()[0] += 0 * stale
				stale = outs[0].Host()[0]
			}
		}}
		if !caught(op, leaks) {
			t.Errorf("%s: a NaN of an earlier call was not caught", op)
		}
		varies := hooked{ref.New(), func(called string, outs, _ []compute.Buffer, call func()) {
			call()
			if calls++; called == op && calls%3 == 0 {
				outs[0].Host()[0] = math.Nextafter32(outs[0].Host()[0], 2)
			}
		}}
		if !caught(op, varies) {
			t.Errorf("%s: a result that varies was not caught", op)
		}
	}
}

// TestEveryOperationHasCases: none of the interface is left out.
func TestEveryOperationHasCases(t *testing.T) {
	for _, list := range [][]testCase{cases(), append(flatCases(), largeCases()...)} {
		seen := map[string]bool{}
		names := map[string]bool{}
		for _, c := range list {
			seen[c.op] = true
			if name := fmt.Sprintf("%s %s", c.op, c.shape); names[name] {
				t.Errorf("%s appears twice", name)
			} else {
				names[name] = true
			}
		}
		for _, op := range operations() {
			if !seen[op] {
				t.Errorf("%s has no case", op)
			}
		}
	}
}

package cpu

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/conformance"
	"ddp/model/compute/ref"
)

func open(t testing.TB, isa string, threads int) compute.Backend {
	t.Helper()
	b, err := New(Options{ISA: isa, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestConforms holds every path of this machine against the reference.
func TestConforms(t *testing.T) {
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			if err := conformance.Run(context.Background(), open(t, isa, 1), ref.New(), report(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestThreadsDoNotMatter wants the same bits from 1, 2, 3 and 7 threads.
func TestThreadsDoNotMatter(t *testing.T) {
	for _, isa := range ISAs() {
		for _, threads := range []int{2, 3, 7} {
			t.Run(fmt.Sprintf("%s %d threads", isa, threads), func(t *testing.T) {
				if err := conformance.Threads(context.Background(), open(t, isa, 1), open(t, isa, threads), report(t)); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func report(t *testing.T) func(conformance.Result) {
	return func(r conformance.Result) {
		if !r.Pass() {
			t.Errorf("%s %s: error %.3g, tolerance %.3g, %v", r.Op, r.Shape, r.MaxErr, r.Tolerance, r.Err)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := New(Options{ISA: "altivec", Threads: 1}); err == nil || !strings.Contains(err.Error(), "no altivec (it has generic") {
		t.Errorf("unknown ISA: %v", err)
	}
	if _, err := New(Options{Threads: 0}); err == nil {
		t.Error("0 threads were accepted")
	}
}

package conformance

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// TestReferenceConforms also shows that the cases hold what they promise.
func TestReferenceConforms(t *testing.T) {
	var s Summary
	if err := Run(context.Background(), ref.New(), ref.New(), func(r Result) {
		s.Add(r)
		if !r.Pass() {
			t.Errorf("%s %s: error %v, tolerance %v, %v", r.Op, r.Shape, r.MaxErr, r.Tolerance, r.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var reported []string
	for _, o := range s.Ops() {
		reported = append(reported, o.Op)
	}
	for _, op := range append(operations(), "Alloc") {
		if !slices.Contains(reported, op) {
			t.Errorf("%s was not reported", op)
		}
	}
}

// TestDependenceOnThreadsIsCaught: the last bit of every operation depends on
// the back end.
func TestDependenceOnThreadsIsCaught(t *testing.T) {
	caught := map[string]bool{}
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	other := hooked{ref.New(), func(_ string, outs, _ []compute.Buffer, call func()) {
		call()
		for _, x := range outs {
			x.Host()[0] = math.Nextafter32(x.Host()[0], 2)
		}
	}}
	err := Threads(ctx, ref.New(), sumsAnew{other}, func(r Result) {
		if caught[r.Op] = caught[r.Op] || !r.Pass(); len(caught) == len(operations()) {
			enough()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v before all operations were seen: %v", err, caught)
	}
	for _, op := range operations() {
		if !caught[op] {
			t.Errorf("%s: another last bit was not caught", op)
		}
	}
}

// sumsAnew adds squares in another order.
type sumsAnew struct{ compute.Backend }

func (s sumsAnew) SumSquares(x compute.Buffer) float64 {
	sum := 0.0
	for _, v := range slices.Backward(x.Host()) {
		sum += float64(v) * float64(v)
	}
	return sum
}

// elsewhere is the reference under another instruction set's name.
type elsewhere struct{ compute.Backend }

func (elsewhere) ISA() string { return "decimal" }

func TestThreadsOfTwoInstructionSetsAreRefused(t *testing.T) {
	err := Threads(context.Background(), ref.New(), elsewhere{ref.New()}, func(Result) { t.Error("a case ran") })
	if err == nil || !strings.Contains(err.Error(), "ref/decimal") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledRunsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := 0
	err := Run(ctx, ref.New(), ref.New(), func(Result) {
		ran++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || ran != 1 {
		t.Errorf("%d cases, error %v", ran, err)
	}
}

func TestPass(t *testing.T) {
	for _, c := range []struct {
		r    Result
		want bool
	}{
		{Result{}, true},
		{Result{MaxErr: 1, Tolerance: 1}, true},
		{Result{MaxErr: 2, Tolerance: 1}, false},
		{Result{MaxErr: math.NaN(), Tolerance: 1}, false},
		{Result{Err: errors.New("wrote outside")}, false},
	} {
		if c.r.Pass() != c.want {
			t.Errorf("%+v passes: %v", c.r, !c.want)
		}
	}
}

func TestSummaryKeepsTheWorst(t *testing.T) {
	var s Summary
	near := Result{Op: "Add", Shape: "near", MaxErr: 9, Tolerance: 10}
	lost := Result{Op: "Linear", Shape: "lost", MaxErr: math.NaN(), Tolerance: 1}
	for _, r := range []Result{
		{Op: "Add", MaxErr: 1, Tolerance: 100}, near, {Op: "Add", MaxErr: 50, Tolerance: 100},
		{Op: "Linear", MaxErr: 0.5, Tolerance: 1}, lost, {Op: "Linear", MaxErr: 5, Tolerance: 1},
	} {
		s.Add(r)
	}
	ops := s.Ops()
	if len(ops) != 2 || ops[0].Op != "Add" || ops[1].Op != "Linear" {
		t.Fatalf("operations %+v", ops)
	}
	if o := ops[0]; o.Cases != 3 || o.Failed != 0 || o.MaxErr != 50 || o.Worst.Shape != "near" {
		t.Errorf("%+v", o)
	}
	if o := ops[1]; o.Cases != 3 || o.Failed != 2 || !math.IsNaN(o.MaxErr) || o.Worst.Shape != "lost" {
		t.Errorf("%+v", o)
	}
}

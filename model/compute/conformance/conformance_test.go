package conformance

import (
	"context"
	"testing"
	"unsafe"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// TestReferenceConforms also shows that the cases hold what they promise.
func TestReferenceConforms(t *testing.T) {
	if err := Run(context.Background(), ref.New(), ref.New(), func(r Result) {
		if !r.Pass() {
			t.Errorf("%s %s: error %v, tolerance %v, %v", r.Op, r.Shape, r.MaxErr, r.Tolerance, r.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// broken is a reference with one fault.
type broken struct {
	compute.Backend
	op string
}

func (b broken) Linear(y, x, w, bias compute.Buffer, m, k, n int) {
	b.Backend.Linear(y, x, w, bias, m, k, n)
	if b.op == "Linear" {
		y.Host()[0] *= 1 + 1e-3
	}
}

func (b broken) Add(dst, src compute.Buffer) {
	b.Backend.Add(dst, src)
	if b.op == "Add" && dst.Len() == 7 {
		src.Host()[6]++
	}
}

func (b broken) LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd compute.Buffer, m, c int) {
	if b.op == "LayerNormGrad" {
		b.Backend.Zero(dx)
	}
	b.Backend.LayerNormGrad(dx, dweight, dbias, dout, x, weight, mean, rstd, m, c)
}

func (b broken) Attention(out, lse, qkv compute.Buffer, n, t, h, d int, drop compute.Dropout) {
	if b.op == "Attention" {
		drop.FirstSample = 0
	}
	b.Backend.Attention(out, lse, qkv, n, t, h, d, drop)
}

func (b broken) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	b.Backend.CrossEntropy(loss, logits, targets, m, v, grad)
	if b.op == "CrossEntropy" && v == 3 {
		past := unsafe.Slice(loss.Pointer(), m+1)
		past[m] = 0
	}
}

// TestFaultsAreCaught breaks one operation at a time: a wrong value, a changed
// input, a lost accumulation, a wrong random stream, a write past the end.
func TestFaultsAreCaught(t *testing.T) {
	for _, op := range []string{"Linear", "Add", "LayerNormGrad", "Attention", "CrossEntropy"} {
		caught := false
		b := broken{ref.New(), op}
		if err := Run(context.Background(), b, ref.New(), func(r Result) { caught = caught || !r.Pass() && r.Op == op }); err != nil {
			t.Fatal(err)
		}
		if !caught {
			t.Errorf("a broken %s was not caught", op)
		}
	}
}

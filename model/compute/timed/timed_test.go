package timed_test

import (
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
	"ddp/model/compute/timed"
)

// TestWork counts the work of operations whose arithmetic is known, and sees
// that the wrapped back end has done it.
func TestWork(t *testing.T) {
	spans := &timed.Spans{}
	b := timed.New(ref.New(), spans)
	defer b.Close()
	x, w, y := b.Alloc(2*3), b.Alloc(3*4), b.Alloc(2*4)
	for i := range x.Host() {
		x.Host()[i] = 1
	}
	for i := range w.Host() {
		w.Host()[i] = 2
	}
	b.Linear(y, x, w, compute.Buffer{}, 2, 3, 4)
	b.Linear(y, x, w, compute.Buffer{}, 2, 3, 4)
	b.Attention(b.Alloc(8), b.Alloc(4), b.Alloc(24), 1, 2, 2, 2, compute.Dropout{}) // 3 scores of 2 heads, 2 products of 2 each
	b.Copy(x, b.Alloc(6))
	if y.Host()[7] != 6 {
		t.Errorf("the product is %v, want 6", y.Host()[7])
	}
	want := map[string]timed.Part{"linear": {Calls: 2, FLOPs: 96}, "attention": {Calls: 1, FLOPs: 48}, "copy": {Calls: 1, Bytes: 48}}
	for _, p := range timed.Parts(spans.List()) {
		if w := want[p.Name]; p.Calls != w.Calls || p.FLOPs != w.FLOPs || p.Bytes != w.Bytes || p.Took <= 0 {
			t.Errorf("%+v, want %+v", p, w)
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

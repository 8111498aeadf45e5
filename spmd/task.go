package spmd

import "fmt"

// smallMessage is the size in bytes up to which latency matters more than
// bandwidth.
const smallMessage = 32 << 10

// newTask describes a collective of count elements and checks what all of them
// have in common.
func newTask[T Number](w *World, k kind, count int, op Op, root int) task {
	t := task{head: header{kind: k, op: op, dtype: dtypeOf[T](), root: int32(root), count: int64(count)}}
	if !op.valid() {
		t.err = fmt.Errorf("there is no %v", op)
	}
	if root < 0 || root >= w.size {
		t.err = fmt.Errorf("there is no rank %d in a world of %d", root, w.size)
	}
	return t
}

// needParts fails the task unless whole is one part for each rank.
func (t *task) needParts(w *World, whole, part int, what string) {
	if t.err == nil && whole != part*w.size {
		t.err = fmt.Errorf("%s has %d elements instead of %d, %d for each of %d ranks", what, whole, part*w.size, part, w.size)
	}
}

// parts cuts x into the ranks' equal parts.
func parts(x []byte, ranks int) [][]byte {
	out := make([][]byte, ranks)
	n := len(x) / ranks
	for r := range out {
		out[r] = x[r*n : (r+1)*n : (r+1)*n]
	}
	return out
}

// chunks cuts x into runs of whole elements for the ranks, which start at cache
// lines of x and are of equal length but for the last ones.
func chunks(x []byte, ranks int) [][]byte {
	out := make([][]byte, ranks)
	n := padded((len(x) + ranks - 1) / ranks)
	for r := range out {
		lo, hi := min(r*n, len(x)), min((r+1)*n, len(x))
		out[r] = x[lo:hi:hi]
	}
	return out
}

// segments calls f with runs of x of at most segmentSize bytes, in order.
func segments(x []byte, f func(b []byte) error) error {
	for len(x) > 0 {
		n := min(len(x), segmentSize)
		if err := f(x[:n:n]); err != nil {
			return err
		}
		x = x[n:]
	}
	return nil
}

// segmentSize is the unit in which large data is passed on from rank to rank.
const segmentSize = 128 << 10

// right returns the rank that is n further, around the end.
func (o *operation) right(n int) int { return (o.w.rank + n) % o.w.size }

// left returns the rank that is n before, around the start.
func (o *operation) left(n int) int { return (o.w.rank - n + o.w.size) % o.w.size }

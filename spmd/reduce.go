package spmd

import (
	"context"
	"slices"
)

// Reduce combines all ranks' x into root's x. The others keep theirs.
func Reduce[T Number](ctx context.Context, w *World, x []T, op Op, root int) error {
	return w.do(ctx, reduce(w, x, op, root))
}

// ReduceAsync is Reduce in the background; x is in use until it is done.
func ReduceAsync[T Number](w *World, x []T, op Op, root int) *Work {
	return w.start(reduce(w, x, op, root))
}

func reduce[T Number](w *World, x []T, op Op, root int) task {
	t := newTask[T](w, kindReduce, len(x), op, root)
	t.run = func(o *operation) error {
		b := bytesOf(x)
		if w.rank != root {
			b = bytesOf(slices.Clone(x))
		}
		if err := o.reduce(b, root); err != nil {
			return err
		}
		if op == Average && w.rank == root {
			divide(t.head.dtype, b, w.size)
		}
		return nil
	}
	return t
}

func (o *operation) reduce(x []byte, root int) error {
	if len(x) <= smallMessage {
		return o.reduceTree(x, root)
	}
	return o.reduceChain(x, root)
}

// reduceTree is a binomial tree, broadcastTree's mirror image.
func (o *operation) reduceTree(x []byte, root int) error {
	me := o.left(root)
	for bit := 1; bit < o.w.size; bit *= 2 {
		if me&bit != 0 {
			o.send(o.left(bit), x)
			return nil
		}
		if me+bit < o.w.size {
			if err := o.receiveReduce(o.right(bit), x); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceChain passes segments of partial results towards root.
func (o *operation) reduceChain(x []byte, root int) error {
	me := o.left(root)
	return segments(x, func(b []byte) error {
		if me != o.w.size-1 {
			if err := o.receiveReduce(o.right(1), b); err != nil {
				return err
			}
		}
		if me != 0 {
			o.send(o.left(1), b)
		}
		return nil
	})
}

// ReduceScatter combines all ranks' src, cuts the result into equal parts and
// leaves part r in rank r's dst: len(src) is len(dst) times the World's size.
// dst may be that part of src itself.
func ReduceScatter[T Number](ctx context.Context, w *World, dst, src []T, op Op) error {
	return w.do(ctx, reduceScatter(w, dst, src, op))
}

// ReduceScatterAsync is ReduceScatter in the background.
func ReduceScatterAsync[T Number](w *World, dst, src []T, op Op) *Work {
	return w.start(reduceScatter(w, dst, src, op))
}

// reduceScatter is direct: each part goes straight to its owner, which combines
// them as they come from its left. No memory is needed besides dst.
func reduceScatter[T Number](w *World, dst, src []T, op Op) task {
	t := newTask[T](w, kindReduceScatter, len(src), op, 0)
	t.needParts(w, len(src), len(dst), "the source")
	t.run = func(o *operation) error {
		p, d := parts(bytesOf(src), w.size), bytesOf(dst)
		for s := 1; s < w.size; s++ {
			o.send(o.right(s), p[o.right(s)])
		}
		copy(d, p[w.rank])
		for s := 1; s < w.size; s++ {
			if err := o.receiveReduce(o.left(s), d); err != nil {
				return err
			}
		}
		if op == Average {
			divide(t.head.dtype, d, w.size)
		}
		return nil
	}
	return t
}

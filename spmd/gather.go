package spmd

import "context"

// AllGather leaves all ranks' src, one after the other, in every rank's dst:
// len(dst) is len(src) times the World's size. src may be the rank's part of
// dst itself.
func AllGather[T Number](ctx context.Context, w *World, dst, src []T) error {
	return w.do(ctx, allGather(w, dst, src))
}

// AllGatherAsync is AllGather in the background.
func AllGatherAsync[T Number](w *World, dst, src []T) *Work {
	return w.start(allGather(w, dst, src))
}

func allGather[T Number](w *World, dst, src []T) task {
	t := newTask[T](w, kindAllGather, len(dst), Sum, 0)
	t.needParts(w, len(dst), len(src), "the destination")
	t.run = func(o *operation) error {
		d := parts(bytesOf(dst), w.size)
		copy(d[w.rank], bytesOf(src))
		if len(d[w.rank]) <= smallMessage {
			return o.allGatherDirect(d)
		}
		return o.allGatherRing(d, w.rank)
	}
	return t
}

// allGatherDirect sends this rank's part to everybody: one step.
func (o *operation) allGatherDirect(x [][]byte) error {
	for s := 1; s < o.w.size; s++ {
		o.send(o.right(s), x[o.w.rank])
	}
	return o.receiveAll(x)
}

// allGatherRing passes parts on to the right, beginning with x[first], which
// this rank has: hosts with neighbouring ranks exchange each part once.
func (o *operation) allGatherRing(x [][]byte, first int) error {
	n := o.w.size
	for s := range n - 1 {
		o.send(o.right(1), x[(first-s+n)%n])
		if err := o.receiveInto(o.left(1), x[(first-s-1+n)%n]); err != nil {
			return err
		}
	}
	return nil
}

// Gather leaves all ranks' src, one after the other, in root's dst, whose
// length is len(src) times the World's size. Elsewhere dst is ignored.
func Gather[T Number](ctx context.Context, w *World, dst, src []T, root int) error {
	return w.do(ctx, gather(w, dst, src, root))
}

// GatherAsync is Gather in the background.
func GatherAsync[T Number](w *World, dst, src []T, root int) *Work {
	return w.start(gather(w, dst, src, root))
}

func gather[T Number](w *World, dst, src []T, root int) task {
	t := newTask[T](w, kindGather, len(src)*w.size, Sum, root)
	if w.rank == root {
		t.needParts(w, len(dst), len(src), "the destination")
	}
	t.run = func(o *operation) error {
		if w.rank != root {
			o.send(root, bytesOf(src))
			return nil
		}
		d := parts(bytesOf(dst), w.size)
		copy(d[root], bytesOf(src))
		return o.receiveAll(d)
	}
	return t
}

// receiveAll receives x[r] from each other rank r.
func (o *operation) receiveAll(x [][]byte) error {
	for s := 1; s < o.w.size; s++ {
		if err := o.receiveInto(o.left(s), x[o.left(s)]); err != nil {
			return err
		}
	}
	return nil
}

// Scatter cuts root's src into equal parts and leaves part r in rank r's dst.
// len(src) is len(dst) times the World's size at root; elsewhere src is ignored.
func Scatter[T Number](ctx context.Context, w *World, dst, src []T, root int) error {
	return w.do(ctx, scatter(w, dst, src, root))
}

// ScatterAsync is Scatter in the background.
func ScatterAsync[T Number](w *World, dst, src []T, root int) *Work {
	return w.start(scatter(w, dst, src, root))
}

func scatter[T Number](w *World, dst, src []T, root int) task {
	t := newTask[T](w, kindScatter, len(dst)*w.size, Sum, root)
	if w.rank == root {
		t.needParts(w, len(src), len(dst), "the source")
	}
	t.run = func(o *operation) error {
		if w.rank != root {
			return o.receiveInto(root, bytesOf(dst))
		}
		p := parts(bytesOf(src), w.size)
		for s := 1; s < w.size; s++ {
			o.send(o.right(s), p[o.right(s)])
		}
		copy(bytesOf(dst), p[root])
		return nil
	}
	return t
}

// AllToAll sends part p of src to rank p, and leaves what rank p sends here in
// part p of dst. Both are cut into equal parts and must not overlap.
func AllToAll[T Number](ctx context.Context, w *World, dst, src []T) error {
	return w.do(ctx, allToAll(w, dst, src))
}

// AllToAllAsync is AllToAll in the background.
func AllToAllAsync[T Number](w *World, dst, src []T) *Work {
	return w.start(allToAll(w, dst, src))
}

func allToAll[T Number](w *World, dst, src []T) task {
	t := newTask[T](w, kindAllToAll, len(src), Sum, 0)
	t.needParts(w, len(src), len(src)/w.size, "the source")
	t.needParts(w, len(dst), len(src)/w.size, "the destination")
	t.run = func(o *operation) error {
		d, p := parts(bytesOf(dst), w.size), parts(bytesOf(src), w.size)
		for s := 1; s < w.size; s++ {
			o.send(o.right(s), p[o.right(s)])
		}
		copy(d[w.rank], p[w.rank])
		return o.receiveAll(d)
	}
	return t
}

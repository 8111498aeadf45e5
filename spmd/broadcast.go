package spmd

import "context"

// Broadcast copies root's x to every rank's x.
func Broadcast[T Number](ctx context.Context, w *World, x []T, root int) error {
	return w.do(ctx, broadcast(w, x, root))
}

// BroadcastAsync is Broadcast in the background; x is in use until it is done.
func BroadcastAsync[T Number](w *World, x []T, root int) *Work {
	return w.start(broadcast(w, x, root))
}

func broadcast[T Number](w *World, x []T, root int) task {
	t := newTask[T](w, kindBroadcast, len(x), Sum, root)
	t.run = func(o *operation) error { return o.broadcast(bytesOf(x), root) }
	return t
}

func (o *operation) broadcast(x []byte, root int) error {
	if len(x) <= smallMessage {
		return o.broadcastTree(x, root)
	}
	return o.broadcastChain(x, root)
}

// broadcastTree is a binomial tree: log2(size) steps.
func (o *operation) broadcastTree(x []byte, root int) error {
	me := o.left(root) // with root as 0
	bit := 1
	for ; bit < o.w.size && me&bit == 0; bit *= 2 {
	}
	if me != 0 {
		if err := o.receiveInto(o.left(bit), x); err != nil {
			return err
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if me+bit < o.w.size {
			o.send(o.right(bit), x)
		}
	}
	return nil
}

// broadcastChain passes segments from rank to rank: every rank sends and
// receives the data once, at the same time.
func (o *operation) broadcastChain(x []byte, root int) error {
	me := o.left(root)
	return segments(x, func(b []byte) error {
		if me != 0 {
			if err := o.receiveInto(o.left(1), b); err != nil {
				return err
			}
		}
		if me != o.w.size-1 {
			o.send(o.right(1), b)
		}
		return nil
	})
}

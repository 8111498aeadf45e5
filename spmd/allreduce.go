package spmd

import "context"

// AllReduce combines all ranks' x, element by element, into every rank's x.
// All ranks get the same bits.
func AllReduce[T Number](ctx context.Context, w *World, x []T, op Op) error {
	return w.do(ctx, allReduce(w, x, op))
}

// AllReduceAsync is AllReduce in the background; x is in use until it is done.
func AllReduceAsync[T Number](w *World, x []T, op Op) *Work {
	return w.start(allReduce(w, x, op))
}

func allReduce[T Number](w *World, x []T, op Op) task {
	t := newTask[T](w, kindAllReduce, len(x), op, 0)
	t.run = func(o *operation) error {
		b := bytesOf(x)
		var err error
		if len(b) <= smallMessage {
			err = o.allReduceDoubling(b)
		} else {
			err = o.allReduceRing(chunks(b, w.size))
		}
		if err == nil && op == Average {
			// What is still to be sent are sums.
			if err = o.flush(); err == nil {
				divide(t.head.dtype, b, w.size)
			}
		}
		return err
	}
	return t
}

// allReduceDoubling is recursive doubling (Thakur, Rabenseifner, Gropp 2005):
// partners at distance 1, 2, 4, ... exchange and combine what they have. Ranks
// beyond the largest power of two hand their values in first and get the
// result last.
func (o *operation) allReduceDoubling(x []byte) error {
	core := 1
	for 2*core <= o.w.size {
		core *= 2
	}
	me := o.w.rank
	if me >= core {
		o.send(me-core, x)
		if err := o.flush(); err != nil {
			return err
		}
		return o.receiveInto(me-core, x)
	}
	guest := me+core < o.w.size
	if guest {
		if err := o.receiveReduce(me+core, x); err != nil {
			return err
		}
	}
	for bit := 1; bit < core; bit *= 2 {
		if err := o.swap(me^bit, x); err != nil {
			return err
		}
	}
	if guest {
		o.send(me+core, x)
	}
	return nil
}

// swap leaves the combination of this rank's and its partner's x in both.
func (o *operation) swap(partner int, x []byte) error {
	o.send(partner, x)
	if err := o.flush(); err != nil {
		return err
	}
	return o.receive(partner, len(x), func(at int, b []byte) {
		d := x[at : at+len(b)]
		if partner < o.w.rank {
			combine(o.head.dtype, o.head.op, d, b, d)
		} else {
			combine(o.head.dtype, o.head.op, d, d, b)
		}
	})
}

// allReduceRing reduces each chunk once around the ring and then passes the
// results around: each rank sends 2(n-1)/n of the data.
func (o *operation) allReduceRing(x [][]byte) error {
	n := o.w.size
	for s := range n - 1 {
		o.send(o.right(1), x[o.left(s)])
		if err := o.receiveReduce(o.left(1), x[o.left(s+1)]); err != nil {
			return err
		}
	}
	// The results overwrite chunks that were to be sent.
	if err := o.flush(); err != nil {
		return err
	}
	return o.allGatherRing(x, o.right(1))
}

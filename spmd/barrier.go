package spmd

import "context"

// Barrier returns once all ranks have called it.
func (w *World) Barrier(ctx context.Context) error { return w.do(ctx, barrier()) }

// BarrierAsync is Barrier in the background.
func (w *World) BarrierAsync() *Work { return w.start(barrier()) }

// barrier is a dissemination barrier: after round i each rank has heard,
// directly or not, from the 2^(i+1)-1 ranks before it.
func barrier() task {
	return task{head: header{kind: kindBarrier}, run: func(o *operation) error {
		for d := 1; d < o.w.size; d *= 2 {
			o.send(o.right(d), nil)
			if err := o.receiveInto(o.left(d), nil); err != nil {
				return err
			}
		}
		return nil
	}}
}

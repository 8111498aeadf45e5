package data

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("loader is closed")

// prefetched is how many batches wait while a step computes: one is enough to
// hide the copy, the second rides out an evaluation.
const prefetched = 2

// Batch is one rank's part of a step's global batch.
type Batch struct {
	Step  int
	Epoch int     // of the first slot; a batch may reach into the next epoch
	X, Y  []int32 // [slots, T]; the receiver's to keep
}

// Loader prepares the batches of one rank ahead of the training loop, on one
// goroutine of its own. Next is called from one goroutine at a time; Close may
// be called from any, also twice.
type Loader struct {
	set         Dataset
	sampler     Sampler
	batch       int
	first       int
	slots       int
	ready       chan *Batch
	quit        chan struct{}
	closeOnce   sync.Once
	prefetching sync.WaitGroup
}

// NewLoader starts at step fromStep of a run whose global batch has batch
// windows, and reads slots firstSlot to firstSlot+slots-1 of each step. Slot s
// of step k is the sampler's position k*batch + s, whichever rank reads it.
func NewLoader(set Dataset, sampler Sampler, batch, firstSlot, slots, fromStep int) *Loader {
	l := &Loader{
		set: set, sampler: sampler,
		batch: batch, first: firstSlot, slots: slots,
		ready: make(chan *Batch, prefetched),
		quit:  make(chan struct{}),
	}
	l.prefetching.Go(func() { l.prefetch(fromStep) })
	return l
}

// Next waits for the next step's batch. It fails with the context's error or ErrClosed.
func (l *Loader) Next(ctx context.Context) (*Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-l.quit:
		return nil, ErrClosed
	default:
	}
	select {
	case b := <-l.ready:
		return b, nil
	case <-l.quit:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops the prefetching and waits for its goroutine.
func (l *Loader) Close() {
	l.closeOnce.Do(func() { close(l.quit) })
	l.prefetching.Wait()
}

func (l *Loader) prefetch(step int) {
	for ; ; step++ {
		select {
		case l.ready <- l.read(step):
		case <-l.quit:
			return
		}
	}
}

func (l *Loader) read(step int) *Batch {
	t := l.set.BlockSize()
	b := &Batch{Step: step, X: make([]int32, l.slots*t), Y: make([]int32, l.slots*t)}
	for s := range l.slots {
		epoch, index := l.sampler.Index(int64(step)*int64(l.batch) + int64(l.first+s))
		if s == 0 {
			b.Epoch = epoch
		}
		l.set.Train(index, epoch, b.X[s*t:(s+1)*t], b.Y[s*t:(s+1)*t])
	}
	return b
}

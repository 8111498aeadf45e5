package spmd

import (
	"context"
	"sync"
)

// Work is an operation in the background. It may be waited for any number of
// times, from any goroutine.
type Work struct {
	done chan struct{}
	err  error // valid once done is closed
}

func newWork() *Work { return &Work{done: make(chan struct{})} }

func (k *Work) finish(err error) {
	k.err = err
	close(k.done)
}

// Done is closed when the operation has ended and its buffers are the caller's
// again.
func (k *Work) Done() <-chan struct{} { return k.done }

// Wait returns the operation's error. When ctx ends first, Wait returns ctx's
// cause and the operation goes on.
func (k *Work) Wait(ctx context.Context) error {
	select {
	case <-k.done:
		return k.err
	default:
	}
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queue runs the collectives of a World one after the other. A blocking one
// runs on its caller's goroutine when nothing is before it; others run on a
// goroutine that lives while there is something to run.
type queue struct {
	mu      sync.Mutex
	running bool
	closed  bool
	waiting []entry
	wg      sync.WaitGroup
}

type entry struct {
	work *Work
	run  func() error
}

// do runs f in its turn and returns its error.
func (q *queue) do(f func() error) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if q.running {
		k := q.add(f)
		q.mu.Unlock()
		<-k.done // not ctx: the operation itself watches that
		return k.err
	}
	q.running = true
	q.wg.Add(1)
	q.mu.Unlock()
	defer q.wg.Done()
	err := f()
	q.handOver()
	return err
}

// start runs f in its turn, in the background unless inline.
func (q *queue) start(inline bool, f func() error) *Work {
	if inline {
		k := newWork()
		k.finish(q.do(f))
		return k
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		k := newWork()
		k.finish(ErrClosed)
		return k
	}
	k := q.add(f)
	if !q.running {
		q.running = true
		q.wg.Add(1)
		go q.drain()
	}
	return k
}

func (q *queue) add(f func() error) *Work {
	k := newWork()
	q.waiting = append(q.waiting, entry{work: k, run: f})
	return k
}

// handOver leaves what has been queued meanwhile to a goroutine.
func (q *queue) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running = false
		return
	}
	q.wg.Add(1)
	go q.drain()
}

func (q *queue) drain() {
	defer q.wg.Done()
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		e := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		e.work.finish(e.run())
	}
}

// close refuses new entries and waits for the old ones; the caller sees to it
// that they fail soon.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wg.Wait()
}

package spmd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// DefaultTimeout is the limit of one operation when Config.Timeout is 0.
const DefaultTimeout = 5 * time.Minute

// World is a group of ranks as one of them sees it. Its methods and the
// collectives on it may be called from several goroutines; collectives then run
// in the order in which they were issued, which must be the same on all ranks.
type World struct {
	rank, size           int
	localRank, localSize int
	host                 string
	timeout              time.Duration
	spinMost             int
	generation           int
	flight               *Flight // nil: nothing is recorded

	mesh    *mesh // nil when size is 1
	splits  splitter
	queue   queue
	mail    mailbox
	closing atomic.Bool

	splitCount atomic.Uint64

	sequence uint64 // of collectives; belongs to the queue's runner
	broken   error  // the first failure of a collective; the same
}

// splitter makes the mesh of a World's child. It is called on all ranks of the
// World, those that take no part (rank < 0) included; nth numbers the splits.
type splitter interface {
	split(ctx context.Context, w *World, nth uint64, rank int, members []int) (*World, error)
}

func newWorld(rank, size int) *World {
	w := &World{rank: rank, size: size, localRank: rank, localSize: size, timeout: DefaultTimeout, spinMost: spinMost}
	w.mail.init(w)
	return w
}

// placeLocally sets the rank's place among those of its host.
func (w *World) placeLocally(rank, size int) {
	w.localRank, w.localSize = rank, size
	if size > runtime.NumCPU() {
		w.spinMost = spinLeast
	}
}

// Solo returns a World of one rank. It holds no resources.
func Solo() *World {
	w := newWorld(0, 1)
	w.host = hostName()
	return w
}

// Rank returns this rank's number, 0 to Size-1.
func (w *World) Rank() int { return w.rank }

// Size returns the number of ranks.
func (w *World) Size() int { return w.size }

// LocalRank returns this rank's number among those on its host.
func (w *World) LocalRank() int { return w.localRank }

// LocalSize returns the number of ranks on this rank's host.
func (w *World) LocalSize() int { return w.localSize }

// Host returns the name of this rank's host.
func (w *World) Host() string { return w.host }

// Close leaves the World and waits for its goroutines. Operations that are
// still in progress, here or on peers that need this rank, fail. Closing twice
// is harmless.
func (w *World) Close() error {
	if w.closing.Swap(true) {
		return nil
	}
	if w.mesh != nil {
		w.mesh.wake()
	}
	w.queue.close()
	w.mail.close()
	if w.mesh != nil {
		w.mesh.announce(stateLeft, w.rank, "")
		w.mesh.stop()
	}
	return nil
}

// task is a collective on one rank, before it runs.
type task struct {
	head header
	err  error // bad arguments
	run  func(o *operation) error
}

// do runs a task and waits for it.
func (w *World) do(ctx context.Context, t task) error {
	return w.queue.do(func() error { return w.perform(ctx, t) })
}

// start runs a task in the background.
func (w *World) start(t task) *Work {
	return w.queue.start(w.size == 1, func() error { return w.perform(context.Background(), t) })
}

// perform runs a task on the queue's runner. A failure breaks the World, since
// the peers' bytes no longer match what this rank would expect.
func (w *World) perform(ctx context.Context, t task) error {
	if w.closing.Load() {
		return ErrClosed
	}
	if w.mesh == nil {
		return w.alone(ctx, t)
	}
	if w.broken != nil {
		return w.broken
	}
	w.sequence++
	o := &operation{w: w, ctx: ctx, lane: w.mesh.lanes[collectiveLane], head: t.head, deadline: time.Now().Add(w.timeout)}
	o.head.sequence = w.sequence
	o.record = w.flight.begin(w, o.head)
	err := t.err
	if err == nil {
		err = t.run(o)
	}
	if err == nil {
		err = o.flush()
	}
	if o.unwatch != nil {
		o.unwatch()
	}
	o.record.end(err)
	if err != nil {
		w.fail(o, err)
	}
	return w.broken
}

// alone runs a task in a World of one.
func (w *World) alone(ctx context.Context, t task) error {
	if t.err != nil {
		return w.describe(t.head, t.err)
	}
	if err := context.Cause(ctx); err != nil {
		return w.describe(t.head, err)
	}
	return t.run(&operation{w: w, ctx: ctx, head: t.head})
}

// fail breaks the World and tells the peers.
func (w *World) fail(o *operation, err error) {
	for _, k := range o.lane.links {
		if k != nil {
			k.queue = nil
		}
	}
	if errors.Is(err, ErrClosed) {
		w.broken = w.describe(o.head, err)
		return
	}
	culprit := w.rank
	var peer *PeerError
	var late *TimeoutError
	var mismatch *MismatchError
	switch {
	case errors.As(err, &peer):
		culprit = peer.Peer
	case errors.As(err, &late), errors.As(err, &mismatch):
	default:
		err = w.describe(o.head, err)
	}
	w.broken = err
	w.mesh.announce(stateBroken, culprit, err.Error())
}

func (w *World) describe(h header, err error) error {
	return fmt.Errorf("rank %d: %v: %w", w.rank, h.kind, err)
}

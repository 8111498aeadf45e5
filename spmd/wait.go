package spmd

import (
	"context"
	"runtime"
	"time"
)

// Spinning saves the microseconds of a sleep and a wake-up, and burns a core.
// Its length, in looks for work, doubles when work came within spinWorth and
// halves otherwise; with more ranks than cores it stays at the least.
const (
	spinWorth = 50 * time.Microsecond
	spinLeast = 8
	spinMost  = 4096
	spinYield = 64 // looks between giving other goroutines a turn
)

// wait returns when bytes from the link (nil: none are expected) have come, or
// bytes have been sent. missing is what the link still owes.
func (o *operation) wait(from *link, missing int64) error {
	if o.spin(from) {
		return nil
	}
	o.watch()
	o.record.waits(o.missing(from))
	slept := time.Now()
	for {
		strikes := o.lane.bell.arm()
		// First the troubles, then the bytes: what a peer sent before it went
		// is still taken.
		err := o.trouble(from)
		if o.progress(from) {
			o.lane.bell.disarm()
			o.adapt(time.Since(slept) < spinWorth)
			return nil
		}
		left := time.Until(o.deadline)
		if err == nil && left <= 0 {
			err = o.timeout(from, missing)
		}
		if err != nil {
			o.lane.bell.disarm()
			return err
		}
		o.lane.bell.park(strikes, left)
	}
}

// spin looks for work for a while.
func (o *operation) spin(from *link) bool {
	for i := range o.lane.spin {
		if o.progress(from) {
			o.adapt(true)
			return true
		}
		if i%spinYield == spinYield-1 {
			runtime.Gosched()
		}
	}
	return false
}

// adapt sets how long the next wait spins.
func (o *operation) adapt(longer bool) {
	if longer {
		o.lane.spin = min(2*o.lane.spin, o.w.spinMost)
	} else {
		o.lane.spin = max(o.lane.spin/2, spinLeast)
	}
}

// progress sends what can be sent, and reports whether anything was or bytes
// from the link have come.
func (o *operation) progress(from *link) bool {
	return o.push() || from != nil && len(from.in.ready(1)) > 0
}

// watch lets the end of ctx wake this rank. It is put off until the first
// sleep: most operations never need it.
func (o *operation) watch() {
	if o.unwatch != nil || o.ctx.Done() == nil {
		return
	}
	done := make(chan struct{})
	stop := context.AfterFunc(o.ctx, func() {
		o.lane.bell.ring()
		close(done)
	})
	o.unwatch = func() {
		if !stop() {
			<-done
		}
	}
}

// trouble returns why waiting has become pointless, or nil.
func (o *operation) trouble(from *link) error {
	if o.w.closing.Load() {
		return ErrClosed
	}
	if err := o.w.mesh.loss(o.w.rank, o.name(), func(peer int) bool { return o.needs(from, peer) }); err != nil {
		return err
	}
	return context.Cause(o.ctx)
}

func (o *operation) needs(from *link, peer int) bool {
	if from != nil && from.peer == peer {
		return true
	}
	for _, k := range o.sending {
		if k.peer == peer {
			return true
		}
	}
	return false
}

// missing is the peer whose bytes, or room for ours, are waited for.
func (o *operation) missing(from *link) int {
	if from != nil {
		return from.peer
	}
	return o.sending[0].peer
}

func (o *operation) timeout(from *link, missing int64) error {
	e := &TimeoutError{Rank: o.w.rank, Op: o.name(), After: o.w.timeout, Bytes: missing}
	if from != nil {
		e.Peer = from.peer
		return e
	}
	k := o.sending[0]
	e.Peer, e.Sending, e.Bytes = k.peer, true, k.queue[0].head.size
	return e
}

package store

import (
	"net"
	"sync"
)

// outbox holds the frames that one connection has still to send, so that nobody
// who has something to say waits for a slow peer.
type outbox struct {
	mu     sync.Mutex
	change sync.Cond // of any field below
	frames [][]byte
	bytes  int // in frames
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.change.L = &o.mu
	return o
}

// push queues a frame. It never blocks; after close the frame is dropped.
func (o *outbox) push(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.frames = append(o.frames, frame)
		o.bytes += len(frame)
		o.change.Broadcast()
	}
}

// close drops what is queued and releases all who wait.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.frames, o.bytes = true, nil, 0
	o.change.Broadcast()
}

// waitBelow waits until at most limit bytes are queued; false means closed.
func (o *outbox) waitBelow(limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.bytes > limit && !o.closed {
		o.change.Wait()
	}
	return !o.closed
}

// sendTo writes frames to conn as they come, until close (nil) or an error.
func (o *outbox) sendTo(conn net.Conn) error {
	for {
		batch := o.take()
		if batch == nil {
			return nil
		}
		if _, err := batch.WriteTo(conn); err != nil {
			return err
		}
	}
}

// take waits for frames and takes them all; nil means closed.
func (o *outbox) take() net.Buffers {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.frames) == 0 && !o.closed {
		o.change.Wait()
	}
	batch := net.Buffers(o.frames)
	o.frames, o.bytes = nil, 0
	o.change.Broadcast()
	return batch
}

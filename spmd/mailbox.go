package spmd

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// postSpin is how often a blocking Send or Recv looks for bytes before it
// leaves them to the goroutine.
const postSpin = 64

// mailbox carries point-to-point messages. They are independent of collectives
// and of each other, except that messages from one rank to another with the
// same tag keep their order. A goroutine moves bytes while requests are open,
// unless their callers do.
type mailbox struct {
	w       *World
	mu      sync.Mutex
	boxes   []box // by peer, the own rank included
	open    int   // requests that need the goroutine
	running bool
	closed  bool
	wg      sync.WaitGroup
}

// box is the traffic with one peer.
type box struct {
	sends []*request
	wants []*request
	now   *parcel  // being received
	early []parcel // received before anybody wanted it
}

// request is a Send or Recv in progress; guarded by the mailbox's mutex.
type request struct {
	work    *Work
	peer    int
	head    header
	buf     []byte   // of a Recv
	out     outgoing // of a Send
	sending bool
	timer   *time.Timer // set with open
	open    bool        // the goroutine works on it, or did
	ended   bool
}

// parcel is a message as it arrives.
type parcel struct {
	head header
	buf  []byte // nil: nobody can use it
	at   int64
	want *request // buf is this Recv's own
}

func (m *mailbox) init(w *World) {
	m.w = w
	m.boxes = make([]box, w.size)
}

// post opens a request. Its work fails at once when it cannot succeed.
func (m *mailbox) post(h header, peer int, x []byte, sending bool) *request {
	h.kind, h.size = kindMessage, int64(len(x))
	r := &request{work: newWork(), peer: peer, head: h, buf: x, out: outgoing{head: h, body: x}}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		m.end(r, ErrClosed)
	case peer < 0 || peer >= m.w.size:
		m.end(r, fmt.Errorf("rank %d: %v: there is no rank %d in a world of %d", m.w.rank, h.kind, peer, m.w.size))
	case sending:
		m.postSend(r)
	default:
		m.postRecv(r)
	}
	return r
}

func (m *mailbox) postSend(r *request) {
	if r.peer == m.w.rank {
		m.deliver(&m.boxes[r.peer], parcel{head: r.head, buf: slices.Clone(r.buf)})
		m.end(r, nil)
		return
	}
	m.boxes[r.peer].sends = append(m.boxes[r.peer].sends, r)
	r.sending = true
}

func (m *mailbox) postRecv(r *request) {
	b := &m.boxes[r.peer]
	i := slices.IndexFunc(b.early, func(p parcel) bool { return p.head.root == r.head.root })
	if i >= 0 {
		p := b.early[i]
		b.early = slices.Delete(b.early, i, i+1)
		m.hand(r, p)
		return
	}
	b.wants = append(b.wants, r)
}

// entrust leaves a request to the goroutine, with a time limit.
func (m *mailbox) entrust(r *request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.ended {
		return
	}
	r.timer = time.AfterFunc(m.w.timeout, func() {
		m.cancel(r, &TimeoutError{Rank: m.w.rank, Peer: r.peer, Op: r.head.String(), Bytes: r.head.size, Sending: r.sending, After: m.w.timeout})
	})
	if r.peer == m.w.rank {
		return
	}
	r.open = true
	m.open++
	if m.running {
		m.lane().bell.ring()
		return
	}
	m.running = true
	m.wg.Add(1)
	go m.work()
}

func (m *mailbox) lane() *lane { return m.w.mesh.lanes[messageLane] }

// end completes a request; the first call counts.
func (m *mailbox) end(r *request, err error) {
	if r.ended {
		return
	}
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.open {
		m.open--
	}
	r.work.finish(err)
}

// hand gives a whole parcel to a Recv.
func (m *mailbox) hand(r *request, p parcel) {
	if err := m.mismatch(r, p.head); err != nil {
		m.end(r, err)
		return
	}
	copy(r.buf, p.buf)
	m.end(r, nil)
}

func (m *mailbox) mismatch(r *request, got header) error {
	if got == r.head {
		return nil
	}
	return &MismatchError{Rank: m.w.rank, Peer: r.peer, Mine: r.head.String(), Theirs: got.String()}
}

// deliver passes a whole parcel on to the first Recv that wants it.
func (m *mailbox) deliver(b *box, p parcel) {
	if i := b.wanting(p.head.root); i >= 0 {
		r := b.wants[i]
		b.wants = slices.Delete(b.wants, i, i+1)
		m.hand(r, p)
		return
	}
	b.early = append(b.early, p)
}

func (b *box) wanting(tag int32) int {
	return slices.IndexFunc(b.wants, func(r *request) bool { return r.head.root == tag })
}

// cancel ends a request before its time. A message that has begun is finished
// from (or into) memory of the mailbox, so that the bytes stay in step.
func (m *mailbox) cancel(r *request, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.ended {
		return
	}
	b := &m.boxes[r.peer]
	if r.out.begun {
		r.out.body = slices.Clone(r.out.body)
	} else {
		b.sends = remove(b.sends, r)
	}
	if b.now != nil && b.now.want == r {
		b.now.buf, b.now.want = slices.Clone(r.buf), nil
	}
	b.wants = remove(b.wants, r)
	m.end(r, err)
	if m.running {
		m.lane().bell.ring()
	}
}

func remove(list []*request, r *request) []*request {
	if i := slices.Index(list, r); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// await waits for a request, or cancels it when ctx ends. It first moves bytes
// itself for a while, which saves a small message the goroutine.
func (m *mailbox) await(ctx context.Context, r *request) error {
	for range postSpin {
		if m.attempt(r) {
			return r.work.err
		}
		runtime.Gosched()
	}
	m.entrust(r)
	select {
	case <-r.work.done:
	case <-ctx.Done():
		m.cancel(r, fmt.Errorf("rank %d: %v: %w", m.w.rank, r.head, context.Cause(ctx)))
		<-r.work.done
	}
	return r.work.err
}

// background returns a request's work, which is done or entrusted.
func (m *mailbox) background(r *request) *Work {
	if !m.attempt(r) {
		m.entrust(r)
	}
	return r.work
}

// attempt moves what can move and reports whether the request has ended.
func (m *mailbox) attempt(r *request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !r.ended && m.w.mesh != nil {
		m.move()
	}
	return r.ended
}

// close fails what is open and waits for the goroutine.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	for i := range m.boxes {
		m.failBox(i, ErrClosed)
	}
	if m.running {
		m.lane().bell.ring()
	}
	m.mu.Unlock()
	m.wg.Wait()
}

// failBox ends every request with one peer.
func (m *mailbox) failBox(peer int, err error) {
	b := &m.boxes[peer]
	if b.now != nil && b.now.want != nil {
		m.end(b.now.want, err)
	}
	for _, r := range slices.Concat(b.sends, b.wants) {
		m.end(r, err)
	}
	b.sends, b.wants, b.now = nil, nil, nil
}

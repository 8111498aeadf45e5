package spmd

import (
	"runtime"
	"slices"
	"time"
)

// courierSpin is how often the mailbox's goroutine looks for bytes before it
// sleeps; each look gives other goroutines a turn.
const courierSpin = 32

// work moves bytes until no request is open.
func (m *mailbox) work() {
	defer m.wg.Done()
	idle := 0
	for {
		moved, more := m.turn()
		switch {
		case !more:
			return
		case moved:
			idle = 0
		case idle < courierSpin:
			idle++
			runtime.Gosched()
		default:
			m.sleep()
		}
	}
}

// turn moves what can move now. more is false when the goroutine shall end.
func (m *mailbox) turn() (moved, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved = m.move()
	m.running = m.open > 0 || m.unfinished()
	return moved, m.running
}

// unfinished says whether a cancelled message still has to leave.
func (m *mailbox) unfinished() bool {
	return slices.ContainsFunc(m.boxes, func(b box) bool { return len(b.sends) > 0 })
}

// sleep parks until a bell, unless there is work or a loss to report.
func (m *mailbox) sleep() {
	strikes := m.lane().bell.arm()
	m.mu.Lock()
	losses := m.losses()
	moved := m.move()
	if !moved {
		for peer, err := range losses {
			if err != nil {
				m.failBox(peer, err)
				moved = true
			}
		}
	}
	idle := m.open == 0 && !m.unfinished()
	m.mu.Unlock()
	if moved || idle {
		m.lane().bell.disarm()
		return
	}
	m.lane().bell.park(strikes, time.Hour)
}

// losses returns, by peer, why its open requests cannot succeed.
func (m *mailbox) losses() []error {
	errs := make([]error, len(m.boxes))
	for peer, b := range m.boxes {
		if p := m.w.mesh.peers[peer]; p != nil && (len(b.sends)+len(b.wants) > 0 || b.now != nil) {
			errs[peer] = p.gone(m.w, kindMessage.String(), peer)
		}
	}
	return errs
}

// gone returns why nothing more will come from this peer, or nil.
func (p *peer) gone(w *World, op string, rank int) error {
	why := p.dead.Load() // before its board: it wrote that while it lived
	switch p.board.state.Load() {
	case stateLeft:
		return &PeerError{Rank: w.rank, Peer: rank, Op: op, Err: errLeft}
	case stateBroken:
		return w.mesh.reported(w.rank, op, rank)
	}
	if why != nil {
		return &PeerError{Rank: w.rank, Peer: rank, Op: op, Err: deadError(*why)}
	}
	return nil
}

// move makes one pass over all peers.
func (m *mailbox) move() bool {
	moved := false
	for peer, k := range m.lane().links {
		if k == nil {
			continue
		}
		b := &m.boxes[peer]
		moved = m.send(b, k) || moved
		moved = m.receive(b, k) || moved
	}
	return moved
}

func (m *mailbox) send(b *box, k *link) bool {
	if len(b.sends) == 0 {
		return false
	}
	room := k.out.space(piece)
	if len(room) == 0 {
		return false
	}
	r := b.sends[0]
	n, done := r.out.fill(room)
	k.out.publish(n)
	k.given.ring()
	if done {
		b.sends = slices.Delete(b.sends, 0, 1)
		m.end(r, nil)
	}
	return true
}

// receive takes bytes from a peer whom somebody waits for.
func (m *mailbox) receive(b *box, k *link) bool {
	if b.now == nil {
		return len(b.wants) > 0 && m.begin(b, k)
	}
	p := b.now
	src := k.in.ready(int(min(p.head.size-p.at, piece)))
	if len(src) == 0 {
		return false
	}
	if p.buf != nil {
		copy(p.buf[p.at:], src)
	}
	if p.at += int64(len(src)); p.at == p.head.size {
		k.in.release(padded(int(k.in.head)+len(src)) - int(k.in.head))
		m.arrived(b)
	} else {
		k.in.release(len(src))
	}
	k.taken.ring()
	return true
}

// begin reads the next message's header and finds a place for its body.
func (m *mailbox) begin(b *box, k *link) bool {
	src := k.in.ready(line)
	if len(src) == 0 {
		return false
	}
	head, err := parseHeader(src)
	k.in.release(line)
	k.taken.ring()
	if err != nil {
		m.w.mesh.peers[k.peer].died(err.Error())
		return true
	}
	b.now = &parcel{head: head}
	m.place(b)
	if head.size == 0 {
		m.arrived(b)
	}
	return true
}

// place receives into the buffer of a Recv that wants the message, if any.
func (m *mailbox) place(b *box) {
	p := b.now
	i := b.wanting(p.head.root)
	if i < 0 {
		p.buf = make([]byte, p.head.size)
		return
	}
	r := b.wants[i]
	b.wants = slices.Delete(b.wants, i, i+1)
	if err := m.mismatch(r, p.head); err != nil {
		m.end(r, err) // the body is dropped
		return
	}
	p.want, p.buf = r, r.buf
}

func (m *mailbox) arrived(b *box) {
	p := b.now
	b.now = nil
	switch {
	case p.want != nil:
		m.end(p.want, nil)
	case p.buf != nil:
		m.deliver(b, *p)
	}
}

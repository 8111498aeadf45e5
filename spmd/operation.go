package spmd

import (
	"context"
	"time"
)

// operation is one collective in progress on one rank. Sends are queued and
// move whenever the operation waits, so a rank that first sends and then
// receives cannot deadlock with peers that do the same.
type operation struct {
	w        *World
	ctx      context.Context
	lane     *lane
	head     header
	deadline time.Time
	record   record
	sending  []*link // those with a queue
	unwatch  func()  // set once the end of ctx rings the bell
}

// outgoing is a message on its way out. Its body must stay unchanged until
// flush returns.
type outgoing struct {
	head  header
	begun bool
	body  []byte
	next  func() []byte // the next part of the body; nil: there is none
}

func (o *operation) name() string { return o.head.kind.String() }

// send queues body for the peer.
func (o *operation) send(peer int, body []byte) {
	o.sendParts(peer, int64(len(body)), body, nil)
}

// sendParts queues a message of size bytes, whose body is followed by what next
// returns until it returns an empty slice.
func (o *operation) sendParts(peer int, size int64, body []byte, next func() []byte) {
	k := o.lane.links[peer]
	if len(k.queue) == 0 {
		o.sending = append(o.sending, k)
	}
	h := o.head
	h.size = size
	k.queue = append(k.queue, outgoing{head: h, body: body, next: next})
	o.push()
}

// push moves queued bytes into rings with room, and reports whether any moved.
func (o *operation) push() bool {
	moved := false
	for i := 0; i < len(o.sending); i++ {
		k := o.sending[i]
		for len(k.queue) > 0 {
			room := k.out.space(piece)
			if len(room) == 0 {
				break
			}
			n, done := k.queue[0].fill(room)
			k.out.publish(n)
			k.given.ring()
			moved = true
			if done {
				k.queue[0] = outgoing{}
				k.queue = k.queue[1:]
			}
		}
		if len(k.queue) == 0 {
			o.sending = append(o.sending[:i], o.sending[i+1:]...)
			i--
		}
	}
	return moved
}

// fill writes the message's next bytes to room, whose length is a multiple of
// a cache line, and pads its end to one.
func (m *outgoing) fill(room []byte) (n int, done bool) {
	if !m.begun {
		m.head.put(room)
		m.begun = true
		n = line
	}
	for {
		if len(m.body) == 0 && m.next != nil {
			if m.body = m.next(); len(m.body) == 0 {
				m.next = nil
			}
		}
		if len(m.body) == 0 {
			return padded(n), true
		}
		if n == len(room) {
			return n, false
		}
		c := copy(room[n:], m.body)
		n += c
		m.body = m.body[c:]
	}
}

// flush waits until everything queued has left this rank's memory.
func (o *operation) flush() error {
	for len(o.sending) > 0 {
		if err := o.wait(nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// stream is a message that has begun to arrive.
type stream struct {
	o    *operation
	link *link
	left int64 // bytes still to come
}

// begin reads the header of the peer's next message, of size bytes, and checks
// that it belongs to the same operation.
func (o *operation) begin(peer int, size int64) (stream, error) {
	k := o.lane.links[peer]
	for {
		b := k.in.ready(line)
		if len(b) == 0 {
			if err := o.wait(k, size); err != nil {
				return stream{}, err
			}
			continue
		}
		got, err := parseHeader(b)
		k.in.release(line)
		if err != nil {
			return stream{}, &PeerError{Rank: o.w.rank, Peer: peer, Op: o.name(), Err: err}
		}
		want := o.head
		want.size = size
		if got != want {
			return stream{}, &MismatchError{Rank: o.w.rank, Peer: peer, Mine: o.head.String(), Theirs: got.String()}
		}
		return stream{o: o, link: k, left: size}, nil
	}
}

// take consumes the next n bytes. use gets them in order, in runs of whole
// elements, with their offset; they are valid during the call only.
func (s *stream) take(n int, use func(at int, b []byte)) error {
	in := s.link.in
	for at := 0; at < n; {
		b := in.ready(min(n-at, piece))
		if len(b) == 0 {
			if err := s.o.wait(s.link, s.left); err != nil {
				return err
			}
			continue
		}
		use(at, b)
		at += len(b)
		if s.left -= int64(len(b)); s.left == 0 {
			in.release(padded(int(in.head)+len(b)) - int(in.head))
		} else {
			in.release(len(b))
		}
		s.link.taken.ring()
		s.o.push()
	}
	return nil
}

// receive consumes one whole message of n bytes from the peer.
func (o *operation) receive(peer, n int, use func(at int, b []byte)) error {
	s, err := o.begin(peer, int64(n))
	if err != nil {
		return err
	}
	return s.take(n, use)
}

// receiveInto copies one whole message from the peer to dst.
func (o *operation) receiveInto(peer int, dst []byte) error {
	return o.receive(peer, len(dst), func(at int, b []byte) { copy(dst[at:], b) })
}

// receiveReduce combines one whole message from the peer with dst: dst = dst op
// the message.
func (o *operation) receiveReduce(peer int, dst []byte) error {
	return o.receive(peer, len(dst), func(at int, b []byte) {
		d := dst[at : at+len(b)]
		combine(o.head.dtype, o.head.op, d, d, b)
	})
}

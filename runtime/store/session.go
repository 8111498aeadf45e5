package store

import (
	"bufio"
	"net"
	"sync"
)

// Limits of one client's unfinished business.
const (
	maxWaiting = 1 << 16  // requests that wait
	maxQueued  = 32 << 20 // bytes of answers not sent yet; above it no further request is read
)

// session is the server's side of one proven connection: its reader runs
// requests against the table, its writer sends the answers.
type session struct {
	conn    net.Conn
	table   *table
	waiting map[uint32]*waiter // guarded by table.mu
	out     *outbox
}

func newSession(conn net.Conn, t *table) *session {
	return &session{conn: conn, table: t, waiting: map[uint32]*waiter{}, out: newOutbox()}
}

// run returns when the connection has ended and nothing of it is left in the table.
func (s *session) run() {
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.out.sendTo(s.conn) // a broken connection also ends read
		s.end()
	})
	s.read()
	s.end()
	wg.Wait()
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	for _, w := range s.waiting {
		s.table.forget(w)
	}
}

// end makes reader and writer return.
func (s *session) end() {
	s.out.close()
	s.conn.Close()
}

// read handles requests until the connection ends or breaks the protocol.
func (s *session) read() {
	in := bufio.NewReader(s.conn)
	for s.out.waitBelow(maxQueued) {
		body, err := readFrame(in)
		if err != nil {
			return
		}
		r, err := parseRequest(body)
		if err != nil {
			return
		}
		s.handle(r)
	}
}

func (s *session) handle(r request) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	switch r.op {
	case opCancel:
		if w := s.waiting[r.id]; w != nil {
			s.table.forget(w)
			delete(s.waiting, r.id)
		}
	case opGet, opWait, opWatch:
		s.await(r)
	default:
		s.send(s.table.apply(r))
	}
}

// await answers r when the table lets it.
func (s *session) await(r request) {
	if len(s.waiting) >= maxWaiting || s.waiting[r.id] != nil {
		s.send(response{id: r.id, failed: "too many requests wait on this connection"})
		return
	}
	w := waitFor(r, func(res response) {
		delete(s.waiting, r.id)
		s.send(res)
	})
	s.waiting[r.id] = w
	s.table.await(w)
}

// send queues an answer.
func (s *session) send(res response) {
	frame, err := res.encode()
	if err != nil { // more keys than fit
		frame, _ = response{id: res.id, failed: err.Error()}.encode()
	}
	s.out.push(frame)
}

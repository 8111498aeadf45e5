package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Why calls fail that the server did not answer.
var (
	ErrClosed = errors.New("store client is closed")
	ErrLost   = errors.New("store connection lost") // usually because the server's process died
)

// link is one connection that many calls share.
type link struct {
	conn net.Conn
	wg   sync.WaitGroup
	out  *outbox
	gone chan struct{} // closed when the link has failed; err is set then

	mu      sync.Mutex
	lastID  uint32
	pending map[uint32]chan response // buffered, one answer each
	err     error
}

func newLink(conn net.Conn) *link {
	l := &link{conn: conn, out: newOutbox(), gone: make(chan struct{}), pending: map[uint32]chan response{}}
	l.wg.Go(l.read)
	l.wg.Go(l.write)
	return l
}

// fail ends the link; the first cause is kept.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.gone)
		l.out.close()
		l.conn.Close()
	}
}

func (l *link) close() {
	l.fail(ErrClosed)
	l.wg.Wait()
}

func (l *link) read() {
	in := bufio.NewReader(l.conn)
	for {
		body, err := readFrame(in)
		if err == nil {
			var res response
			if res, err = parseResponse(body); err == nil {
				l.deliver(res)
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the server closed the connection")
		}
		l.fail(fmt.Errorf("%w: %w", ErrLost, err))
		return
	}
}

// deliver hands an answer to its call; calls that gave up are not there any more.
func (l *link) deliver(res response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.pending[res.id]; answer != nil {
		delete(l.pending, res.id)
		answer <- res
	}
}

func (l *link) write() {
	if err := l.out.sendTo(l.conn); err != nil {
		l.fail(fmt.Errorf("%w: %w", ErrLost, err))
	}
}

// call sends r and waits for its answer, the link's end or ctx.
func (l *link) call(ctx context.Context, r request) (response, error) {
	var answer chan response
	r.id, answer = l.register()
	defer l.unregister(r.id)
	frame, err := r.encode()
	if err != nil {
		return response{}, err
	}
	l.out.push(frame)
	select {
	case res := <-answer:
		if res.failed != "" {
			return res, errors.New(res.failed)
		}
		return res, nil
	case <-l.gone:
		return response{}, l.err
	case <-ctx.Done():
		l.takeBack(r.id)
		return response{}, context.Cause(ctx)
	}
}

func (l *link) register() (uint32, chan response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID++
	for l.pending[l.lastID] != nil {
		l.lastID++ // only after four thousand million calls
	}
	answer := make(chan response, 1)
	l.pending[l.lastID] = answer
	return l.lastID, answer
}

func (l *link) unregister(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
}

// takeBack tells the server that nobody waits any more.
func (l *link) takeBack(id uint32) {
	if frame, err := (request{op: opCancel, id: id}).encode(); err == nil {
		l.out.push(frame)
	}
}

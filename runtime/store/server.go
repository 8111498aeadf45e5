package store

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// handshakeTime is how long a stranger may take to prove itself.
const handshakeTime = 10 * time.Second

// Server answers the clients of one listener.
type Server struct {
	listener net.Listener
	secret   []byte
	table    *table
	wg       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// Serve answers clients that know secret on l, which it then owns, until Close.
func Serve(l net.Listener, secret []byte) *Server {
	s := &Server{listener: l, secret: secret, table: newTable(), conns: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	return s
}

// Addr is where clients dial.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends all connections and returns when every goroutine of the server has
// ended. Requests that wait fail at their clients. It may be called repeatedly.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	var err error
	if first {
		err = s.listener.Close()
	}
	s.wg.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, or the client hung up first: give others a chance.
			if !s.pause() {
				return
			}
			continue
		}
		if !s.adopt(conn) {
			conn.Close()
			return
		}
		s.wg.Go(func() {
			defer s.drop(conn)
			s.serve(conn)
		})
	}
}

// pause holds accepting after an error; it reports whether the server is still open.
func (s *Server) pause() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

func (s *Server) adopt(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[conn] = struct{}{}
	}
	return !s.closed
}

func (s *Server) drop(conn net.Conn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	conn.Close()
}

// serve talks to one client until either side ends.
func (s *Server) serve(conn net.Conn) {
	conn.SetDeadline(time.Now().Add(handshakeTime))
	if admit(conn, s.secret) != nil {
		return // a stranger gets no explanation
	}
	conn.SetDeadline(time.Time{})
	newSession(conn, s.table).run()
}

package elastic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"ddp/runtime/launch"
	"ddp/runtime/seal"
)

// Guest is a node that came by itself. Its agent is at the other end of the
// connection, in Visit.
type Guest struct {
	Host  string
	Ranks int
	Place int // among the first nodes, as it wishes

	conn net.Conn
	in   *bufio.Reader
}

// Close turns a guest away that no job takes.
func (g Guest) Close() { g.conn.Close() }

const (
	maxVisit     = 4 << 10          // bytes of what a guest says first
	greetingTime = 10 * time.Second // in which it must say it
	maxGreetings = 64               // that may be under way at once
)

// visit is what a guest says first.
type visit struct {
	Version int    `json:"version"`
	Host    string `json:"host"`
	Ranks   int    `json:"ranks"`
	Place   int    `json:"place,omitempty"`
}

// Receive accepts guests that know the secret until l closes, and passes them
// on. Others are turned away; warn is told why.
func Receive(ctx context.Context, l net.Listener, secret []byte, guests chan<- Guest, warn func(error)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	greetings := make(chan struct{}, maxGreetings)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		greetings <- struct{}{}
		wg.Go(func() {
			defer func() { <-greetings }()
			g, err := admit(ctx, conn, secret)
			if err != nil {
				warn(fmt.Errorf("a node that wanted to join was turned away: %w", err))
				return
			}
			select {
			case guests <- g:
			case <-ctx.Done():
				g.conn.Close()
			}
		})
	}
}

func admit(ctx context.Context, conn net.Conn, secret []byte) (Guest, error) {
	sealed, err := seal.Server(ctx, conn, secret)
	if err != nil {
		return Guest{}, err
	}
	if err := sealed.SetReadDeadline(time.Now().Add(greetingTime)); err != nil {
		sealed.Close()
		return Guest{}, err
	}
	in := bufio.NewReaderSize(sealed, maxVisit)
	text, err := in.ReadSlice('\n')
	var v visit
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	switch {
	case err != nil:
	case v.Version != protocolVersion:
		err = fmt.Errorf("its program speaks version %d, ours version %d: install the same program on all hosts", v.Version, protocolVersion)
	case v.Ranks < 1 || v.Host == "":
		err = fmt.Errorf("it has no name, or %d ranks", v.Ranks)
	default:
		err = sealed.SetReadDeadline(time.Time{})
	}
	if err != nil {
		sealed.Close()
		return Guest{}, err
	}
	return Guest{Host: v.Host, Ranks: v.Ranks, Place: v.Place, conn: sealed, in: in}, nil
}

// openGuest takes a guest's agent over.
func openGuest(g Guest, s setup, output func(*lineReport), inbox *queue[message]) node {
	r, ended := newRemote(s, output, inbox), make(chan struct{})
	var once sync.Once
	cut := func() { once.Do(func() { g.conn.Close() }) }
	var last error
	r.line = line{commands: halfCloser{g.conn}, ended: ended, cut: cut, why: func() string {
		if last == nil || errors.Is(last, io.EOF) {
			return "it closed the connection"
		}
		return last.Error()
	}}
	r.wg.Go(func() {
		defer close(ended)
		defer cut()
		last = launch.ReadLines(g.in, maxReport, func(text []byte, _ bool) { r.receive(text) })
	})
	r.begin()
	return r
}

// halfCloser closes the writing half alone, so that the agent's last words come.
type halfCloser struct{ net.Conn }

func (h halfCloser) Close() error {
	if half, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return h.Conn.Close()
}

// route is how launcher and agent reach each other; empty: as ssh says.
type route struct{ launcher, own string }

func hostOf(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return ""
	}
	return host
}

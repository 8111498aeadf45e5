package spmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	handshakeLimit = 10 * time.Second // for strangers too: they cannot hold a listener up
	dialLimit      = 3 * time.Second  // for each of a peer's addresses
)

// meeting connects one rank with its remote peers, two lanes each. The higher
// rank dials.
type meeting struct {
	site    *site
	cards   []card
	mu      sync.Mutex
	wanted  map[claim]bool // connections still to be accepted
	arrived chan arrival
	wg      sync.WaitGroup
}

type arrival struct {
	peer, lane int
	conn       net.Conn
	err        error
}

// connectTCP links the remote peers.
func (s *site) connectTCP(ctx context.Context, m *mesh, cards []card, remote []int) (*wires, error) {
	if s.listener != nil {
		defer s.listener.Close()
	}
	ws := &wires{mesh: m}
	if len(remote) == 0 {
		return ws, nil
	}
	conns, err := s.meet(ctx, cards, remote)
	if err != nil {
		return nil, err
	}
	for _, r := range remote {
		m.peers[r] = &peer{board: new(board)}
	}
	for _, a := range conns {
		ws.add(a)
	}
	ws.start()
	return ws, nil
}

// meet returns all connections, or none.
func (s *site) meet(ctx context.Context, cards []card, remote []int) ([]arrival, error) {
	ctx, cancel := context.WithCancel(ctx)
	total := len(remote) * laneCount
	t := &meeting{site: s, cards: cards, wanted: map[claim]bool{}, arrived: make(chan arrival, total+1)}
	for _, r := range remote {
		for lane := range laneCount {
			if r > s.rank {
				t.wanted[t.claim(s.rank, r, lane)] = true
				continue
			}
			t.wg.Go(func() {
				conn, err := t.dial(ctx, r, lane)
				t.arrived <- arrival{r, lane, conn, err}
			})
		}
	}
	t.wg.Go(func() { t.accept(ctx) })
	conns, err := t.collect(ctx, total)
	cancel()
	_ = s.listener.Close()
	t.wg.Wait()
	if err == nil {
		return conns, nil
	}
	close(t.arrived)
	for a := range t.arrived {
		conns = append(conns, a)
	}
	for _, a := range conns {
		if a.conn != nil {
			_ = a.conn.Close()
		}
	}
	return nil, err
}

func (t *meeting) collect(ctx context.Context, total int) ([]arrival, error) {
	var conns []arrival
	for len(conns) < total {
		select {
		case a := <-t.arrived:
			if a.err != nil {
				return conns, &PeerError{Rank: t.site.rank, Peer: a.peer, Op: "connect", Err: a.err}
			}
			conns = append(conns, a)
		case <-ctx.Done():
			return conns, fmt.Errorf("connect to %d ranks by TCP: %w", total/laneCount, context.Cause(ctx))
		}
	}
	return conns, nil
}

// claim is what rank from says to rank to's listener.
func (t *meeting) claim(to, from, lane int) claim {
	return claim{generation: uint64(t.site.config.Generation), token: t.cards[to].Token, from: uint32(from), lane: uint32(lane)}
}

// dial tries the peer's addresses one by one. It is unreachable when nothing
// answers at one of them, and its host at no other.
func (t *meeting) dial(ctx context.Context, peer, lane int) (net.Conn, error) {
	var last error
	silent, answered := false, false
	for _, address := range t.cards[peer].Addresses {
		conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", address)
		if err != nil {
			last = err
			refused := errors.Is(err, syscall.ECONNREFUSED)
			answered = answered || refused && !isLoopback(address)
			silent = silent || !refused
			continue
		}
		err = t.shake(ctx, conn, func() error {
			return greet(conn, t.site.config.Secret, t.claim(peer, t.site.rank, lane))
		})
		if err == nil {
			return conn, nil
		}
		last = fmt.Errorf("%s: %w", address, err)
	}
	err := fmt.Errorf("none of its addresses %v will do: %w", t.cards[peer].Addresses, last)
	if silent && !answered && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil, err
}

func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}

// shake runs one side of a handshake within its limit; conn is closed unless it
// succeeds.
func (t *meeting) shake(ctx context.Context, conn net.Conn, side func() error) error {
	_ = conn.SetDeadline(time.Now().Add(handshakeLimit))
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	err := side()
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
	}
	return err
}

// accept admits peers until the listener closes. Strangers are turned away.
func (t *meeting) accept(ctx context.Context) {
	for {
		conn, err := t.site.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			t.arrived <- arrival{t.site.rank, 0, nil, fmt.Errorf("accept: %w", err)}
			return
		}
		t.wg.Go(func() {
			var c claim
			err := t.shake(ctx, conn, func() (err error) {
				c, err = admit(conn, t.site.config.Secret, t.judge)
				return err
			})
			if err == nil {
				t.arrived <- arrival{int(c.from), int(c.lane), conn, nil}
			}
		})
	}
}

// judge decides on a proven claim, and takes it off the wanted ones.
func (t *meeting) judge(c claim) byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case c.generation != uint64(t.site.config.Generation):
		return verdictGeneration
	case c.token != t.site.card.Token:
		return verdictToken
	case !t.wanted[c]:
		return verdictRank
	}
	delete(t.wanted, c)
	return verdictWelcome
}

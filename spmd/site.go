package spmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
)

// site is what one rank has opened for its peers before they are connected.
type site struct {
	config   Config
	rank     int
	card     card
	segment  *segment     // nil: no shared memory
	listener net.Listener // nil: no TCP
}

func openSite(c Config, rank, size int) (*site, error) {
	s := &site{config: c, rank: rank, card: card{Host: c.HostID}}
	if c.Transport != "tcp" {
		seg, err := newSegment(size)
		if err != nil && c.Transport == "shm" {
			return nil, err
		}
		if err == nil {
			s.segment = seg
			s.card.PID, s.card.FD, s.card.Nonce = os.Getpid(), seg.fd, seg.nonce
		}
	}
	if c.Transport != "shm" {
		if err := s.listen(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *site) listen() error {
	l, err := net.Listen("tcp", net.JoinHostPort("", "0"))
	if err != nil {
		return fmt.Errorf("listen for peers: %w", err)
	}
	s.listener = l
	s.card.Token = newToken()
	s.card.Addresses, err = addresses(s.config.Address, l.Addr().(*net.TCPAddr).Port)
	return err
}

// close takes back what was opened.
func (s *site) close() {
	if s.segment != nil {
		s.segment.close()
	}
	if s.listener != nil {
		_ = s.listener.Close()
	}
}

// enter connects w's mesh and waits until all ranks have done so.
func (s *site) enter(ctx context.Context, w *World, cards []card) error {
	m, err := s.connect(ctx, cards)
	if err != nil {
		s.close()
		return err
	}
	w.mesh = m
	if err := w.Barrier(ctx); err != nil {
		_ = w.Close()
		return fmt.Errorf("wait for all ranks to connect: %w", err)
	}
	if s.segment != nil {
		s.segment.forget()
	}
	return nil
}

// sharesMemory says whether the way to a peer is shared memory.
func (s *site) sharesMemory(c card) bool {
	return s.segment != nil && c.Nonce != "" && c.Host == s.card.Host
}

// connect builds the mesh. On success it owns the segment.
func (s *site) connect(ctx context.Context, cards []card) (*mesh, error) {
	m := newMesh(s.rank, len(cards))
	var local, remote []int
	for r, c := range cards {
		switch {
		case r == s.rank:
		case s.sharesMemory(c):
			local = append(local, r)
		case s.listener == nil || len(c.Addresses) == 0:
			return nil, fmt.Errorf("rank %d is on another host (or has no shared memory), and transport %q reaches none", r, s.config.Transport)
		default:
			remote = append(remote, r)
		}
	}
	if len(remote) > 0 && len(s.config.Secret) == 0 {
		return nil, errors.New("connections by TCP need a secret (Config.Secret)")
	}
	shared, err := s.shareMemory(m, cards, local)
	if err != nil {
		return nil, err
	}
	wires, err := s.connectTCP(ctx, m, cards, remote)
	if err != nil {
		shared.close()
		return nil, err
	}
	m.stop = func() {
		wires.close()
		shared.close()
		if s.segment != nil {
			s.segment.close()
		}
	}
	return m, nil
}

// neighbours is what a rank holds of its peers on the same host.
type neighbours struct {
	watcher  watcher
	segments []*segment
}

func (n *neighbours) close() {
	n.watcher.close()
	for _, seg := range n.segments {
		seg.close()
	}
}

// shareMemory links the local peers, and prepares the mesh's own board and
// bells whether or not there are any.
func (s *site) shareMemory(m *mesh, cards []card, local []int) (*neighbours, error) {
	n := new(neighbours)
	m.mine = new(board)
	if len(local) > 0 {
		m.mine = s.segment.board()
	}
	for i, l := range m.lanes {
		l.bell = newBell()
		if len(local) > 0 {
			l.bell = s.segment.bell(i)
		}
	}
	for _, r := range local {
		if err := s.share(m, n, r, cards[r]); err != nil {
			n.close()
			return nil, fmt.Errorf("connect to rank %d: %w", r, err)
		}
	}
	return n, nil
}

// share links one local peer. The process is watched before its segment is
// opened: the segment's nonce then proves that the watched one is the peer.
func (s *site) share(m *mesh, n *neighbours, r int, c card) error {
	p := new(peer)
	gone := func() {
		p.died("its process died")
		m.wake()
	}
	if err := n.watcher.add(c.PID, gone); err != nil {
		return err
	}
	seg, err := openSegment(c.PID, c.FD, c.Nonce, len(m.peers))
	if err != nil {
		return err
	}
	n.segments = append(n.segments, seg)
	p.board = seg.board()
	m.peers[r] = p
	for i, l := range m.lanes {
		l.links[r] = &link{
			peer: r, in: s.segment.ring(i, r), out: seg.ring(i, s.rank),
			taken: seg.bell(i), given: seg.bell(i),
		}
	}
	return nil
}

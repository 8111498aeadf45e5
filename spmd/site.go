package spmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
)

// card is what a rank tells its peers so that they can reach it.
type card struct {
	Host      string   `json:"host"` // Config.HostID
	PID       int      `json:"pid,omitempty"`
	FD        int      `json:"fd,omitempty"` // the segment's, in that process
	Nonce     string   `json:"nonce,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Token     string   `json:"token,omitempty"` // the listener's, so that nobody mistakes one for another
	Error     string   `json:"error,omitempty"` // why this rank cannot take part
}

func parseCard(text []byte) (card, error) {
	var c card
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("a card is not JSON: %w", err)
	}
	switch {
	case c.Error != "":
		return c, errors.New(c.Error)
	case c.Nonce != "" && (c.PID <= 0 || c.FD < 0):
		return c, fmt.Errorf("a card names file %d of process %d", c.FD, c.PID)
	case len(c.Addresses) > 0 && len(c.Token) != tokenLength:
		return c, fmt.Errorf("a card's token has %d characters", len(c.Token))
	}
	return c, nil
}

// locate returns a rank's place among those of its host.
func locate(cards []card, rank int) (localRank, localSize int) {
	for r, c := range cards {
		if c.Host != cards[rank].Host {
			continue
		}
		if r < rank {
			localRank++
		}
		localSize++
	}
	return localRank, localSize
}

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

// splitSites makes the children of Worlds between processes.
type splitSites struct{ config Config }

func (f *splitSites) split(ctx context.Context, w *World, _ uint64, rank int, members []int) (*World, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, w.timeout, fmt.Errorf("not all ranks connected within %v", w.timeout))
	defer cancel()
	var s *site
	var mine card
	if len(members) > 1 {
		var err error
		if s, err = openSite(f.config, rank, len(members)); err != nil {
			mine.Error = err.Error()
		} else {
			mine = s.card
		}
	}
	cards, err := f.trade(ctx, w, mine, members)
	if err == nil && rank >= 0 {
		var child *World
		if child, err = f.enter(ctx, s, rank, cards); err == nil {
			return child, nil
		}
	} else if s != nil {
		s.close()
	}
	if err != nil {
		err = fmt.Errorf("rank %d: split: %w", w.rank, err)
	}
	return nil, err
}

// trade sends everybody's card to everybody through the parent, and returns
// those of the members.
func (f *splitSites) trade(ctx context.Context, w *World, mine card, members []int) ([]card, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	all, err := allGatherBytes(ctx, w, text)
	if err != nil {
		return nil, err
	}
	cards := make([]card, len(members))
	for i, r := range members {
		if cards[i], err = parseCard(all[r]); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return cards, nil
}

func (f *splitSites) enter(ctx context.Context, s *site, rank int, cards []card) (*World, error) {
	child := newWorld(rank, len(cards))
	if s == nil {
		return child, nil
	}
	child.placeLocally(locate(cards, rank))
	child.splits = f
	return child, s.enter(ctx, child, cards)
}

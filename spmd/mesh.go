package spmd

import "sync/atomic"

// link is one rank's way to and from one peer in one lane.
type link struct {
	peer    int
	in, out *ring
	taken   *bell      // rung after bytes were consumed from in
	given   *bell      // rung after bytes were published to out
	queue   []outgoing // what a collective still has to send here, oldest first
}

// lane is a set of links that carries one kind of traffic, so that messages
// waiting for their receiver never stand in a collective's way.
type lane struct {
	links []*link // by rank; nil at the own one
	bell  *bell   // of the goroutine that works on this lane
	spin  int     // turns to look for work before parking; adapts
}

const (
	collectiveLane = iota
	messageLane
	laneCount
)

// ringCapacity is the size in bytes of each lane's rings.
var ringCapacity = [laneCount]int{512 << 10, 128 << 10}

// peer is what a rank knows of another one.
type peer struct {
	board *board                 // its state, as it shows it
	dead  atomic.Pointer[string] // why it is known to be gone without having left
	byes  atomic.Int32           // lanes on which a remote peer has said goodbye
}

func (p *peer) died(why string) { p.dead.CompareAndSwap(nil, &why) }

// mesh is one rank's side of a World of two ranks or more.
type mesh struct {
	rank  int
	mine  *board
	peers []*peer // by rank; nil at the own one
	lanes [laneCount]*lane
	stop  func() // ends goroutines and frees memory, after all users are done
}

func newMesh(rank, size int) *mesh {
	m := &mesh{rank: rank, peers: make([]*peer, size), stop: func() {}}
	for i := range m.lanes {
		m.lanes[i] = &lane{links: make([]*link, size), spin: spinLeast}
	}
	return m
}

// announce shows the peers a new state and wakes those who wait.
func (m *mesh) announce(state uint32, culprit int, text string) {
	m.mine.set(state, culprit, text)
	for _, l := range m.lanes {
		for _, k := range l.links {
			if k != nil {
				k.given.ring()
				k.taken.ring()
			}
		}
	}
}

// wake rings the rank's own bells.
func (m *mesh) wake() {
	for _, l := range m.lanes {
		l.bell.ring()
	}
}

// loss returns the peer whose failure is to blame and why, or nil: a process
// that died without a word, else a rank that gave up (and may have ended since),
// else one of those needed that has left.
func (m *mesh) loss(rank int, op string, needed func(peer int) bool) error {
	var gaveUp, left error
	for r, p := range m.peers {
		if p == nil {
			continue
		}
		why := p.dead.Load() // before its board: it wrote that while it lived
		state := p.board.state.Load()
		if why != nil && state != stateLeft && state != stateBroken {
			return &PeerError{Rank: rank, Peer: r, Op: op, Err: deadError(*why)}
		}
		if state == stateBroken && gaveUp == nil {
			gaveUp = m.reported(rank, op, r)
		}
		if state == stateLeft && left == nil && needed(r) {
			left = &PeerError{Rank: rank, Peer: r, Op: op, Err: errLeft}
		}
	}
	if gaveUp != nil {
		return gaveUp
	}
	return left
}

// reported turns what a broken peer wrote into an error that blames the
// culprit it names, unless that is this rank itself.
func (m *mesh) reported(rank int, op string, by int) error {
	culprit, text := m.peers[by].board.reason(len(m.peers))
	if culprit < 0 || culprit == rank || culprit == by {
		return &PeerError{Rank: rank, Peer: by, Op: op, Err: gaveUpError(text)}
	}
	return &PeerError{Rank: rank, Peer: culprit, Op: op, Err: reportedError{by: by, text: text}}
}

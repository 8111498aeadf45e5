package cluster

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Link is how frames fare on their way from one host to another. The zero value
// passes everything at once.
type Link struct {
	Down  bool          // nothing arrives, and nobody is told
	Loss  float64       // share of frames that don't arrive, in [0, 1]
	Delay time.Duration // on the way
}

// Network is an Ethernet switch in this process that joins the hosts' network
// namespaces. A kernel has tc for this, but not every kernel has netem, and here
// each direction between any two hosts has a Link of its own. Its methods may be
// called concurrently.
type Network struct {
	mu     sync.Mutex
	random *rand.Rand
	ports  map[int]*port
	links  map[[2]int]Link // from, to; absent: the zero Link
	wg     sync.WaitGroup
}

// newNetwork is one whose losses come from a seed.
func newNetwork(seed uint64) *Network {
	return &Network{random: rand.New(rand.NewPCG(seed, 0)), ports: map[int]*port{}, links: map[[2]int]Link{}}
}

// Set makes l the link from one host to another, by their numbers.
func (n *Network) Set(from, to int, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.links[[2]int{from, to}] = l
}

// SetBoth makes l the link in both directions.
func (n *Network) SetBoth(a, b int, l Link) {
	n.Set(a, b, l)
	n.Set(b, a, l)
}

// SetAll makes l the link of every pair.
func (n *Network) SetAll(l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a := range n.ports {
		for b := range n.ports {
			n.links[[2]int{a, b}] = l
		}
	}
}

// Isolate cuts a host off in both directions.
func (n *Network) Isolate(host int) { n.between(host, Link{Down: true}) }

// Rejoin undoes Isolate.
func (n *Network) Rejoin(host int) { n.between(host, Link{}) }

func (n *Network) between(host int, l Link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.ports {
		n.links[[2]int{host, other}], n.links[[2]int{other, host}] = l, l
	}
}

// Part cuts every link between a host of one group and one of the other.
func (n *Network) Part(one, other []int) {
	for _, a := range one {
		for _, b := range other {
			n.SetBoth(a, b, Link{Down: true})
		}
	}
}

// Heal makes all links pass everything.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.links)
}

// forward takes a frame from a port to where it is to go. Its first six bytes
// are the destination: a host's address ends in its number, any other address
// means all hosts.
func (n *Network) forward(from int, frame []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if to, known := n.ports[int(frame[5])]; known && frame[0] == macPrefix {
		n.pass(from, to, frame)
		return
	}
	for number, to := range n.ports {
		if number != from {
			n.pass(from, to, frame)
		}
	}
}

// pass applies the link. n.mu is held.
func (n *Network) pass(from int, to *port, frame []byte) {
	l := n.links[[2]int{from, to.number}]
	switch {
	case l.Down, l.Loss > 0 && n.random.Float64() < l.Loss:
	case l.Delay > 0:
		late := append([]byte(nil), frame...)
		time.AfterFunc(l.Delay, func() { to.put(late) })
	default:
		to.put(frame)
	}
}

// plug adds a port and moves its frames until it is closed.
func (n *Network) plug(p *port) {
	n.mu.Lock()
	n.ports[p.number] = p
	n.mu.Unlock()
	n.wg.Go(func() { p.read(func(frame []byte) { n.forward(p.number, frame) }) })
}

// unplug closes a port.
func (n *Network) unplug(p *port) {
	n.mu.Lock()
	delete(n.ports, p.number)
	n.mu.Unlock()
	p.file.Close()
}

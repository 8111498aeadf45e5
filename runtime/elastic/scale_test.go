package elastic

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// crowd is many nodes of a rank each, which answer what the control plane asks
// of them at once and right. It counts what goes over the wires.
type crowd struct {
	control      *Control
	now          time.Duration
	nodes        int
	gen          int
	order        []int
	events       []Event // that are under way
	asked, heard int     // messages to and from nodes
	finished     bool
}

func newCrowd(nodes int) *crowd {
	set := Settings{Live: true, Store: true, MinNodes: 1, MaxRestarts: 1 << 20}
	for range nodes {
		set.Ranks = append(set.Ranks, 1)
	}
	return &crowd{control: NewControl(set), nodes: nodes}
}

// settle tells events and what follows from them, until nothing does. It returns
// the messages that it took, and the control plane's own time.
func (c *crowd) settle(events ...Event) (messages int, took time.Duration) {
	c.asked, c.heard = 0, 0
	c.events = append(c.events, events...)
	began := time.Now()
	for len(c.events) > 0 && !c.finished {
		e := c.events[0]
		c.events = c.events[1:]
		c.heard++
		c.now += time.Microsecond
		actions, _ := c.control.Step(c.now, e)
		for _, a := range actions {
			c.answer(a)
		}
	}
	return c.asked + c.heard, time.Since(began)
}

func (c *crowd) later(e Event) { c.events = append(c.events, e) }

// answer does what nodes do when they are asked.
func (c *crowd) answer(a Action) {
	switch a := a.(type) {
	case Join:
		c.asked++
		c.later(Joined{a.Node})
	case Warm:
		c.asked++
		c.later(Ready{a.Node})
	case Listen:
		c.asked++
		c.later(Listening{a.Gen})
	case Start:
		c.gen, c.order = a.Gen, a.Nodes
		c.asked += len(a.Nodes)
		for _, n := range a.Nodes {
			c.later(Up{a.Gen, n})
		}
	case Pause:
		c.asked += len(c.order)
		for rank := range c.order {
			c.later(Paused{a.Gen, rank})
		}
	case Release:
		c.asked++
	case Kill:
		c.asked += len(c.order)
		for rank, n := range c.order {
			c.later(Exited{Gen: a.Gen, Rank: rank, Exit: launch.Exit{Signal: syscall.SIGKILL}})
			c.later(Quiet{a.Gen, n, 0})
		}
	case Finish:
		c.finished = true
	}
}

// kill ends a rank; all others find their world broken.
func (c *crowd) kill(victim int) []Event {
	events := []Event{Exited{Gen: c.gen, Rank: victim, Exit: launch.Exit{Signal: syscall.SIGKILL}}, Quiet{c.gen, c.order[victim], 0}}
	for rank := range c.order {
		if rank != victim {
			events = append(events, Stranded{Gen: c.gen, Rank: rank, Peer: victim})
		}
	}
	return events
}

// changes are what happens to a crowd, by name, in order.
var changes = []struct {
	name   string
	events func(c *crowd) []Event
}{
	{"start", func(*crowd) []Event { return []Event{Begin{}} }},
	{"rank killed", func(c *crowd) []Event { return c.kill(len(c.order) / 2) }},
	{"rank 0 killed", func(c *crowd) []Event { return c.kill(0) }},
	{"node joins", func(c *crowd) []Event { return []Event{Offered{Ranks: 1}} }},
	{"node drained", func(c *crowd) []Event { return []Event{Drain{c.order[len(c.order)/3]}} }},
}

// change makes the nth change happen and fails unless all nodes are in a new generation.
func (c *crowd) change(t testing.TB, nth int) (messages int, took time.Duration) {
	before := c.gen
	messages, took = c.settle(changes[nth].events(c)...)
	if c.finished || len(c.order) < c.nodes-1 || nth > 0 && c.gen == before {
		t.Fatalf("%s: generation %d after %d, %d nodes of %d, finished %v", changes[nth].name, c.gen, before, len(c.order), c.nodes, c.finished)
	}
	return messages, took
}

// TestMessagesPerChange holds the control plane to a few messages for each node
// and change, however many nodes there are.
func TestMessagesPerChange(t *testing.T) {
	const most = 8 // to and from a node, together
	for _, nodes := range []int{10, 100, 1000} {
		c := newCrowd(nodes)
		for i := range changes {
			if messages, _ := c.change(t, i); messages > most*nodes+most {
				t.Errorf("%d nodes, %s: %d messages, want at most %d for each node", nodes, changes[i].name, messages, most)
			}
		}
	}
}

// BenchmarkChange is the control plane's own work for each kind of change, of
// 10,000 nodes that answer at once; messages go to and from nodes.
func BenchmarkChange(b *testing.B) {
	const nodes = 10000
	for i, change := range changes {
		b.Run(fmt.Sprintf("%s, %d nodes", change.name, nodes), func(b *testing.B) {
			var total time.Duration
			messages := 0
			for b.Loop() {
				c := newCrowd(nodes)
				for j := range i {
					c.change(b, j)
				}
				m, took := c.change(b, i)
				messages, total = m, total+took
			}
			b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/change")
			b.ReportMetric(float64(messages), "messages/change")
		})
	}
}

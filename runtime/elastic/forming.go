package elastic

import (
	"fmt"
	"slices"
	"time"
)

// gather starts the agents that are missing and begins a generation as soon as
// enough of them are there.
func (c *Control) gather(now time.Duration, why string) {
	c.phase = joining
	var starts []Action
	few := len(c.present()) < c.set.MinNodes
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.at == away && !n.guest && !n.leaving && (n.again == 0 || few) {
			n.at = coming
			c.retry(n, 0)
			starts = append(starts, Join{i})
		}
	}
	c.due = now + JoinTime
	c.do(why, starts...)
	c.formWhenComplete(now)
}

// formWhenComplete begins a generation when all nodes are there, when enough are
// and the others have been called for the last time, or when a later generation
// has enough: those that come after it will be taken in.
func (c *Control) formWhenComplete(now time.Duration) bool {
	awaited := c.gen == 0 && c.awaits()
	if awaited && c.due <= now+LastCall {
		return false // the last call has been made
	}
	present := c.present()
	switch {
	case len(present) < c.set.MinNodes:
		return false
	case awaited:
		c.due = now + LastCall
		return false
	}
	c.form(now, present)
	return true
}

// awaits tells whether some node's agent is being started.
func (c *Control) awaits() bool {
	for i := range c.nodes {
		if c.nodes[i].at == coming {
			return true
		}
	}
	return false
}

// present are the nodes that can belong to a generation: first those of the last
// one in their order, so that ranks keep their numbers, then the others.
func (c *Control) present() []int {
	var out []int
	taken := make([]bool, len(c.nodes))
	for _, i := range c.order {
		if n := &c.nodes[i]; n.at == enlisted && !n.leaving {
			out = append(out, i)
			taken[i] = true
		}
	}
	for i := range c.nodes {
		if n := &c.nodes[i]; n.at >= there && !n.leaving && !taken[i] {
			out = append(out, i)
		}
	}
	return c.limited(out)
}

// limited leaves out the nodes with which a generation would get too large.
func (c *Control) limited(nodes []int) []int {
	var out []int
	ranks := 0
	for _, i := range nodes {
		if c.set.MaxNodes > 0 && len(out) == c.set.MaxNodes || c.set.MaxRanks > 0 && ranks+c.nodes[i].ranks > c.set.MaxRanks {
			continue
		}
		out = append(out, i)
		ranks += c.nodes[i].ranks
	}
	return out
}

// form makes nodes the members of the coming generation and opens the store's
// socket, if the world needs one.
func (c *Control) form(now time.Duration, nodes []int) {
	for _, i := range nodes {
		if c.nodes[i].at != enlisted {
			c.nodes[i].at = enlisted
			if c.gen > 0 {
				c.nodes[i].since = now
				c.out = append(c.out, Membership{i, true, "it joined"})
			}
		}
	}
	c.order, c.due = nodes, 0
	if c.set.Store {
		c.phase = listening
		c.do(c.allThere(), Listen{c.gen, nodes[0]})
		return
	}
	c.start(now, c.allThere())
}

// allThere puts the coming generation's size in words.
func (c *Control) allThere() string {
	if len(c.order) == len(c.nodes) {
		return "all nodes are there"
	}
	return fmt.Sprintf("%d of %d nodes are there", len(c.order), len(c.nodes))
}

// start begins the generation.
func (c *Control) start(now time.Duration, why string) {
	c.phase, c.ends = running, endings{}
	c.ranks, c.ups = c.ranks[:0], 0
	for _, i := range c.order {
		n := &c.nodes[i]
		n.up, n.quiet, n.known = false, false, true
		c.ranks = append(c.ranks, make([]rankState, n.ranks)...)
	}
	c.do(why, Start{c.gen, slices.Clone(c.order), c.set.Live})
	if c.stop != 0 {
		c.askToStop(now, "a stop was asked for meanwhile")
	}
}

func (c *Control) nodeUp(now time.Duration, e Up) {
	if e.Gen != c.gen || !c.alive() {
		c.late(e.Gen)
		return
	}
	if n := &c.nodes[e.Node]; !n.up {
		n.up = true
		c.ups++
	}
	if c.ups < len(c.order) {
		c.do("other nodes are still starting")
		return
	}
	if c.failedAt != 0 {
		c.do("all ranks run again", Recovered{c.gen, c.failedAt})
		c.failedAt = 0
	} else {
		c.do("all ranks run")
	}
	c.takeIn(now)
}

package elastic

import (
	"fmt"
	"slices"
	"time"
)

// nodeJoined handles an agent that is there. A node that comes while ranks run
// gets ready beside them, so that it delays nobody.
func (c *Control) nodeJoined(now time.Duration, i int) {
	n := &c.nodes[i]
	n.at = there
	c.retry(n, 0)
	switch {
	case n.leaving:
		c.do("it was drained meanwhile", Release{i})
		n.at = away
	case c.phase == joining:
		if !c.formWhenComplete(now) {
			c.do("others are still to come")
		}
	case !c.room(i):
		c.do("it is a spare: there are as many nodes as may be")
	case c.phase == stopping || c.phase == killing || c.finishing():
		c.do("it is not needed now")
	case c.set.Live:
		n.at = warming
		c.do("its ranks get ready", Warm{i})
	case c.phase == running:
		c.again(now, fmt.Sprintf("node %d has come: all ranks start again with it", i))
	default:
		c.do("the next generation will have it")
	}
}

// room tells whether the generation at hand could be larger by node i.
func (c *Control) room(i int) bool {
	return slices.Contains(c.limited(append(slices.Clone(c.order), i)), i)
}

// takeIn sees to the nodes that came or were drained while the generation began.
func (c *Control) takeIn(now time.Duration) {
	if c.finishing() {
		return
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		spare := n.at == there && !n.leaving && c.room(i)
		switch {
		case c.phase != running:
			return
		case spare && c.set.Live:
			n.at = warming
			c.do(fmt.Sprintf("node %d's ranks get ready", i), Warm{i})
		case spare:
			c.again(now, fmt.Sprintf("node %d has come: all ranks start again with it", i))
		case n.at == warm && !n.leaving:
			c.pause(now, fmt.Sprintf("node %d is ready", i))
		case n.at == enlisted && n.leaving && c.set.Live:
			c.pause(now, fmt.Sprintf("node %d is to leave", i))
		case n.at == enlisted && n.leaving:
			c.again(now, fmt.Sprintf("node %d is to leave: all ranks start again without it", i))
		}
	}
}

// finishing tells whether some rank has done all its work: the others will soon.
func (c *Control) finishing() bool { return slices.Contains(c.ranks, gone) }

// nodeOffered adds a node.
func (c *Control) nodeOffered(e Offered) {
	c.nodes = append(c.nodes, machine{ranks: e.Ranks, guest: e.Guest})
	i := len(c.nodes) - 1
	switch n := &c.nodes[i]; {
	case e.Guest:
		n.at = coming
		c.do(fmt.Sprintf("it is node %d", i))
	case c.phase == stopping || c.phase == killing:
		c.do("it is not needed now")
	default:
		n.at = coming
		c.do(fmt.Sprintf("node %d is called", i), Join{i})
	}
}

// nodeReady takes a node in at the next step's end.
func (c *Control) nodeReady(now time.Duration, i int) {
	n := &c.nodes[i]
	if n.at != warming {
		c.do("its ranks have begun already")
		return
	}
	n.at = warm
	if c.phase == running && !c.finishing() {
		c.pause(now, fmt.Sprintf("node %d is ready", i))
		return
	}
	c.do("the next generation will have it")
}

// drain takes a node out at the next step's end.
func (c *Control) drain(now time.Duration, i int) {
	switch {
	case i < 0 || i >= len(c.nodes) || c.nodes[i].leaving:
		c.do("there is no such node")
		return
	case c.finishing() || c.phase == stopping || c.phase == killing:
		c.do("all nodes are about to end")
		return
	case c.nodes[i].at == enlisted && len(c.order)-1 < c.set.MinNodes:
		c.do(fmt.Sprintf("the job needs %d nodes", c.set.MinNodes))
		return
	}
	n := &c.nodes[i]
	n.leaving = true
	c.retry(n, 0)
	switch {
	case n.at != enlisted:
		if n.at != away {
			c.out = append(c.out, Release{i})
		}
		n.at = away
		c.do("it takes no part yet")
	case c.phase == running && c.set.Live:
		c.pause(now, fmt.Sprintf("node %d is to leave", i))
	case c.phase == running:
		c.again(now, fmt.Sprintf("node %d is to leave: all ranks start again without it", i))
	default:
		c.do("the next generation will do without it")
	}
}

// pause asks the ranks to wait after their step, for a change of membership.
func (c *Control) pause(now time.Duration, why string) {
	c.phase = pausing
	c.do(why, Pause{c.gen})
}

// rankPaused goes on when no rank works any more.
func (c *Control) rankPaused(now time.Duration, e Paused) {
	if e.Gen != c.gen || !c.alive() {
		c.late(e.Gen)
		return
	}
	c.ranks[e.Rank] = waiting
	c.do(fmt.Sprintf("rank %d waits", e.Rank))
	if c.phase == pausing && c.all(func(r rankState) bool { return r == waiting }) {
		c.regroup(now, "all ranks wait")
	}
}

// again starts all ranks anew for a change of membership, which costs no restart.
func (c *Control) again(now time.Duration, why string) {
	c.anew = true
	c.kill(why)
}

// dismiss takes those nodes out of the order that were lost or are to leave.
func (c *Control) dismiss() {
	for _, i := range c.order {
		if n := &c.nodes[i]; n.leaving && n.at == enlisted {
			n.at = away
			c.out = append(c.out, Membership{i, false, "it was drained"}, Release{i})
		}
	}
	c.order = slices.DeleteFunc(slices.Clone(c.order), func(i int) bool { return c.nodes[i].at != enlisted })
}

// nodeLost handles an agent's end. Its ranks died with it.
func (c *Control) nodeLost(now time.Duration, i int) {
	n := &c.nodes[i]
	was := n.at
	c.retryLater(now, n)
	n.at = away
	switch {
	case n.leaving && was != enlisted:
		c.do(fmt.Sprintf("node %d has left", i))
	case was != enlisted && c.phase == joining && !n.known && c.gen == 0 && c.set.MinNodes == len(c.set.Ranks):
		c.do(fmt.Sprintf("node %d cannot be reached", i), Blame{c.gen, -1, i})
		c.finish(exitRendezvous, "a job needs all its nodes")
	case was != enlisted:
		c.do(fmt.Sprintf("node %d cannot be reached; it is tried again", i))
		if c.phase == joining {
			c.formWhenComplete(now)
		}
	default:
		c.memberLost(now, i)
	}
}

// retryLater plans the next attempt to get back a node that is about to be away.
func (c *Control) retryLater(now time.Duration, n *machine) {
	if n.guest || n.leaving {
		return
	}
	if n.pause == 0 || n.at == enlisted && now-n.since > ProofTime {
		n.pause = firstPause
	} else {
		n.pause = min(2*n.pause, longestPause)
	}
	c.retry(n, now+n.pause)
}

// retry sets when the next attempt to get a node back is due; 0: never.
func (c *Control) retry(n *machine, at time.Duration) {
	if n.again != 0 {
		c.retries--
	}
	if at != 0 {
		c.retries++
	}
	n.again = at
}

// callBack starts the agents whose time has come.
func (c *Control) callBack(now time.Duration) {
	for i := range c.nodes {
		n := &c.nodes[i]
		if n.again == 0 || now < n.again {
			continue
		}
		c.retry(n, 0)
		switch {
		case n.at != away:
			c.do(fmt.Sprintf("node %d has come by itself", i))
		case c.phase == stopping || c.phase == killing:
			c.do(fmt.Sprintf("node %d is not needed now", i)) // gather will call it
		default:
			n.at = coming
			c.do(fmt.Sprintf("node %d is tried again", i), Join{i})
		}
	}
}

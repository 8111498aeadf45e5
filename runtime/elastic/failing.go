package elastic

import (
	"fmt"
	"slices"
	"time"

	"ddp/runtime/launch"
)

const exitRendezvous = launch.ExitRendezvous

// rankExited notes an ending and decides whether the others may go on.
func (c *Control) rankExited(now time.Duration, e Exited) {
	if c.set.Live && e.Gen < c.gen && c.phase != killing {
		c.exitedBefore(now, e)
		return
	}
	if e.Gen != c.gen || !c.alive() && c.phase != killing {
		c.late(e.Gen)
		return
	}
	c.ranks[e.Rank] = gone
	end := c.ends.add(e, c.phase == killing, c.stop != 0)
	switch {
	case c.phase == killing:
		c.do(fmt.Sprintf("rank %d %s", e.Rank, end.kind))
	case end.kind == clean:
		c.do(fmt.Sprintf("rank %d is done", e.Rank))
	case end.kind == victim && e.Apart && c.part(now, e.Rank, e.Peer):
	case end.kind == victim:
		c.suspect(now, fmt.Sprintf("rank %d blames a peer", e.Rank))
	default:
		c.fail(now, end, fmt.Sprintf("rank %d failed: %v", e.Rank, e.Exit))
	}
}

// exitedBefore handles the end of a process that its agent had not yet told of
// the generation that has begun: it will be replaced in it.
func (c *Control) exitedBefore(now time.Duration, e Exited) {
	var ends endings
	if end := ends.add(e, false, c.stop != 0); end.kind != guilty {
		c.do(fmt.Sprintf("rank %d of generation %d %s", e.Rank, e.Gen, end.kind))
		return
	}
	c.restarts = append(c.restarts, now)
	c.do(fmt.Sprintf("rank %d of generation %d failed too and is replaced", e.Rank, e.Gen), Blame{e.Gen, e.Rank, -1})
}

// rankStranded handles a rank that lives but cannot go on.
func (c *Control) rankStranded(now time.Duration, e Stranded) {
	if e.Gen != c.gen || !c.alive() {
		c.late(e.Gen)
		return
	}
	c.ranks[e.Rank] = stranded
	c.ends.strand(e.Rank)
	if e.Apart && c.part(now, e.Rank, e.Peer) {
		return
	}
	c.suspect(now, fmt.Sprintf("rank %d is stranded", e.Rank))
	if e.Late && e.Peer >= 0 && e.Peer < len(c.ranks) && c.ranks[e.Peer] == active && c.phase == suspecting {
		c.due = now + HungTime
		c.do(fmt.Sprintf("rank %d hangs", e.Peer), Replace{c.gen, e.Peer, e.Rank})
	}
}

// part goes on without the later of two nodes that cannot reach each other. It is
// called back, at longer and longer intervals, until they can; no restart is
// spent on it. It returns false when that would not help.
func (c *Control) part(now time.Duration, rank, peer int) bool {
	a, b := c.nodeOf(rank), c.nodeOf(peer)
	if !c.set.Live || c.stop != 0 || c.phase == stopping || a < 0 || b < 0 || a == b {
		return false
	}
	i := a
	if slices.Index(c.order, b) > slices.Index(c.order, a) {
		i = b
	}
	c.failed(now)
	c.sendAway(now, i, c.ends.culprit(), fmt.Sprintf("nodes %d and %d cannot reach each other", a, b), "a member cannot reach it")
	return true
}

// suspect gives the culprit time to say why, unless nobody is left who could be it.
func (c *Control) suspect(now time.Duration, why string) {
	c.do(why)
	if c.phase == running || c.phase == pausing {
		c.phase = suspecting
		c.suspectAt = now
		c.due = now + CauseTime
	}
	if c.phase == suspecting && c.set.Live && c.all(func(r rankState) bool { return r != active }) {
		c.failTogether(now, "no rank works any more")
	}
}

// failTogether recovers from a failure without a culprit that has ended.
func (c *Control) failTogether(now time.Duration, why string) {
	c.fail(now, c.ends.culprit(), why)
}

// fail recovers from a failure: live, or by killing the generation. culprit may
// be nil.
func (c *Control) fail(now time.Duration, culprit *ending, why string) {
	c.failed(now)
	switch {
	case !c.set.Live || c.phase == stopping || c.stop != 0:
		c.kill(why)
	case culprit != nil && c.newcomer(now, culprit):
		c.sendAway(now, c.nodeOf(culprit.rank), culprit, why, "it failed as soon as it had joined")
	case culprit != nil && (c.final(culprit) || culprit.permanent), c.recentRestarts(now) >= c.set.MaxRestarts:
		c.kill(why)
	default:
		c.restarts = append(c.restarts, now)
		c.do(why)
		c.blame(culprit)
		c.regroup(now, fmt.Sprintf("recovery %d of %s", c.recentRestarts(now), c.budget()))
	}
}

// failed notes since when there is something to recover from.
func (c *Control) failed(now time.Duration) {
	switch {
	case c.failedAt != 0:
	case c.phase == suspecting:
		c.failedAt = c.suspectAt
	default:
		c.failedAt = now
	}
}

// newcomer tells whether the culprit's node has yet to prove itself.
func (c *Control) newcomer(now time.Duration, culprit *ending) bool {
	i := c.nodeOf(culprit.rank)
	return culprit.rank >= 0 && i >= 0 && c.gen > 0 && c.nodes[i].since > 0 && now-c.nodes[i].since < ProofTime &&
		len(c.order)-1 >= c.set.MinNodes
}

// sendAway goes on without node i.
func (c *Control) sendAway(now time.Duration, i int, culprit *ending, why, said string) {
	c.do(why)
	c.blame(culprit)
	c.retryLater(now, &c.nodes[i])
	c.nodes[i].at = away
	c.out = append(c.out, Membership{i, false, said}, Release{i})
	c.regroup(now, "the others go on without it")
}

// regroup begins the next generation with the ranks that live.
func (c *Control) regroup(now time.Duration, why string) {
	c.dismiss()
	c.gen++
	c.ends = endings{}
	c.gather(now, why)
}

// memberLost handles the end of a member's agent.
func (c *Control) memberLost(now time.Duration, i int) {
	switch {
	case c.phase == joining || c.phase == listening:
		c.failed(now)
		c.ends.lost(i)
		if c.set.Live && c.gen > 0 {
			c.leaveBehind(now, i)
			return
		}
		c.settle(now, fmt.Sprintf("node %d was lost before its ranks ran", i))
	case c.nodes[i].quiet:
		c.do(fmt.Sprintf("node %d had nothing left to do", i))
	case c.phase == killing:
		c.nodes[i].quiet = true
		c.ends.lost(i)
		c.do(fmt.Sprintf("node %d was lost too", i))
		c.settleWhenQuiet(now)
	case c.set.Live && c.phase != stopping && c.stop == 0:
		c.failed(now)
		c.ends.lost(i)
		c.leaveBehind(now, i)
	default:
		c.nodes[i].quiet = true
		c.ends.lost(i)
		c.failed(now)
		c.out = append(c.out, Membership{i, false, "it was lost"})
		c.kill(fmt.Sprintf("node %d was lost", i))
		c.settleWhenQuiet(now)
	}
}

// leaveBehind goes on without a lost node, or waits for it when too few are left.
func (c *Control) leaveBehind(now time.Duration, i int) {
	c.do(fmt.Sprintf("node %d was lost", i), Blame{c.gen, -1, i}, Membership{i, false, "it was lost"})
	c.regroup(now, "the others go on, or wait until they are enough")
}

// kill ends the generation's processes.
func (c *Control) kill(why string) {
	c.phase, c.due = killing, 0
	c.do(why, Kill{c.gen})
}

func (c *Control) nodeQuiet(now time.Duration, e Quiet) {
	if e.Gen != c.gen || !c.alive() && c.phase != killing {
		c.late(e.Gen)
		return
	}
	c.nodes[e.Node].quiet = true
	c.ends.stuck += e.Stuck
	c.do(fmt.Sprintf("node %d is clear", e.Node))
	c.settleWhenQuiet(now)
}

func (c *Control) settleWhenQuiet(now time.Duration) {
	for _, i := range c.order {
		if !c.nodes[i].quiet {
			return
		}
	}
	c.settle(now, "the generation is over")
}

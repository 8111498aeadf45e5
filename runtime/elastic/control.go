package elastic

import (
	"fmt"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// Settings are the limits of a job. Times are durations.
type Settings struct {
	Ranks       []int // by node
	Store       bool  // generations need rank 0's socket
	MaxRestarts int   // within Window
	Window      time.Duration
	Grace       time.Duration // of a stop; 0: unlimited
	OwnCode     bool          // giving up has the failed rank's exit code
}

const (
	// JoinTime is how long all agents may take to be there.
	JoinTime = time.Minute
	// CauseTime is how long a generation goes on after a rank that blames another
	// has ended: the culprit may still say why. Nothing else delays a kill.
	CauseTime = 500 * time.Millisecond
)

// phase is where the job stands.
type phase int

const (
	joining    phase = iota // agents are being started
	listening               // rank 0's node opens a socket
	running                 // ranks run
	suspecting              // a victim has ended, its culprit not yet
	stopping                // ranks were asked to stop
	killing                 // ranks were killed and are being cleared away
	over
)

// Control is the control plane: it decides what happens to the job. It does no
// input or output and has no clock; times are since the job's beginning.
type Control struct {
	set   Settings
	phase phase
	gen   int
	nodes []nodeState
	ends  endings
	timer time.Duration // when Expired is due; 0: never

	failedAt time.Duration   // of the failure that is being recovered from
	restarts []time.Duration // of the job so far
	stop     syscall.Signal  // first signal that asked for an end
	forced   bool            // the stop was not clean
	cancel   bool

	out    []Action
	reason string
}

// nodeState is what is known of a node: its agent is on its way or there, its
// ranks of this generation were started, nothing of them is left.
type nodeState struct{ joining, joined, up, quiet bool }

// NewControl returns the control plane of a job that has not begun.
func NewControl(set Settings) *Control {
	return &Control{set: set, nodes: make([]nodeState, len(set.Ranks))}
}

// Step takes an event and returns what to do, in order, and why. It must not be
// called again after a Finish.
func (c *Control) Step(now time.Duration, event Event) (actions []Action, reason string) {
	c.out, c.reason = nil, ""
	switch e := event.(type) {
	case Begin:
		c.join(now, "the job begins")
	case Joined:
		c.nodeJoined(e.Node)
	case Lost:
		c.nodeLost(now, e.Node)
	case Listening:
		if c.current(e.Gen, listening) {
			c.start("the store's socket is open")
		}
	case Up:
		c.nodeUp(e)
	case Exited:
		c.rankExited(now, e)
	case Quiet:
		c.nodeQuiet(now, e)
	case Signalled:
		c.signalled(now, e.Signal)
	case Expired:
		c.expired(now)
	case Cancelled:
		c.cancelled()
	}
	return c.out, c.reason
}

// do adds actions and says why.
func (c *Control) do(reason string, actions ...Action) {
	c.out = append(c.out, actions...)
	if c.reason != "" {
		c.reason += "; "
	}
	c.reason += reason
}

// setTimer asks for Expired at a time, unless that is what is due already.
func (c *Control) setTimer(at time.Duration) {
	if c.timer != at {
		c.timer = at
		c.out = append(c.out, Timer{at})
	}
}

// current tells whether an event of generation gen belongs to the phase.
func (c *Control) current(gen int, p phase) bool {
	if gen == c.gen && c.phase == p {
		return true
	}
	c.do(fmt.Sprintf("it came too late for generation %d", gen))
	return false
}

// alive tells whether ranks of the current generation may run.
func (c *Control) alive() bool {
	return c.phase == running || c.phase == suspecting || c.phase == stopping
}

// join starts the agents that are missing, or goes on when none is.
func (c *Control) join(now time.Duration, why string) {
	c.phase = joining
	var starts []Action
	all := true
	for i := range c.nodes {
		n := &c.nodes[i]
		all = all && n.joined
		if !n.joined && !n.joining {
			n.joining = true
			starts = append(starts, Join{i})
		}
	}
	if all {
		c.prepare(why)
		return
	}
	c.do(why, starts...)
	c.setTimer(now + JoinTime)
}

// prepare opens the store's socket, if the world needs one.
func (c *Control) prepare(why string) {
	c.setTimer(0)
	if c.set.Store {
		c.phase = listening
		c.do(why, Listen{c.gen})
		return
	}
	c.start(why)
}

func (c *Control) start(why string) {
	c.phase = running
	for i := range c.nodes {
		c.nodes[i].up, c.nodes[i].quiet = false, false
	}
	c.do(why, Start{c.gen})
}

func (c *Control) nodeJoined(node int) {
	c.nodes[node].joined, c.nodes[node].joining = true, false
	if c.phase != joining {
		c.do("it is not needed now")
		return
	}
	for _, n := range c.nodes {
		if !n.joined {
			c.do("others are still to come")
			return
		}
	}
	c.prepare("all nodes are there")
}

func (c *Control) nodeUp(e Up) {
	if e.Gen != c.gen || !c.alive() {
		c.do(fmt.Sprintf("it came too late for generation %d", e.Gen))
		return
	}
	c.nodes[e.Node].up = true
	for _, n := range c.nodes {
		if !n.up {
			c.do("other nodes are still starting")
			return
		}
	}
	if c.gen > 0 {
		c.do("all ranks run again", Recovered{c.gen, c.failedAt})
		return
	}
	c.do("all ranks run")
}

// rankExited notes an ending and decides whether the others may go on.
func (c *Control) rankExited(now time.Duration, e Exited) {
	if e.Gen != c.gen || !c.alive() && c.phase != killing {
		c.do(fmt.Sprintf("it came too late for generation %d", e.Gen))
		return
	}
	end := c.ends.add(e, c.phase == killing, c.stop != 0)
	switch {
	case c.phase == killing:
		c.do(fmt.Sprintf("rank %d %s", e.Rank, end.kind))
	case end.kind == clean:
		c.do(fmt.Sprintf("rank %d is done", e.Rank))
	case end.kind == victim && c.phase == running:
		c.phase = suspecting
		c.failedAt = now
		c.do(fmt.Sprintf("rank %d blames a peer, which may still say why", e.Rank))
		c.setTimer(now + CauseTime)
	case end.kind == victim:
		c.do(fmt.Sprintf("rank %d blames a peer too", e.Rank))
	default:
		c.fail(now, fmt.Sprintf("rank %d failed: %v", e.Rank, e.Exit))
	}
}

// fail kills the generation.
func (c *Control) fail(now time.Duration, why string) {
	if c.phase != suspecting {
		c.failedAt = now
	}
	c.kill(why)
}

func (c *Control) kill(why string) {
	c.phase = killing
	c.do(why, Kill{c.gen})
	c.setTimer(0)
}

// nodeLost handles an agent's end. Its ranks died with it.
func (c *Control) nodeLost(now time.Duration, node int) {
	neverJoined := !c.nodes[node].joined && c.gen == 0
	c.nodes[node].joined, c.nodes[node].joining = false, false
	switch {
	case c.phase == joining && neverJoined:
		c.do(fmt.Sprintf("node %d cannot be reached", node), Blame{c.gen, -1, node})
		c.finish(launch.ExitRendezvous, "a job needs all its nodes")
	case c.phase == joining || c.phase == listening:
		c.ends.lost(node)
		c.failedAt = now
		c.settle(now, fmt.Sprintf("node %d was lost before its ranks ran", node))
	case c.nodes[node].quiet:
		c.do(fmt.Sprintf("node %d had nothing left to do", node))
	case c.alive():
		c.nodes[node].quiet = true
		c.ends.lost(node)
		c.fail(now, fmt.Sprintf("node %d was lost", node))
		c.settleWhenQuiet(now)
	case c.phase == killing:
		c.nodes[node].quiet = true
		c.ends.lost(node)
		c.do(fmt.Sprintf("node %d was lost too", node))
		c.settleWhenQuiet(now)
	}
}

func (c *Control) nodeQuiet(now time.Duration, e Quiet) {
	if e.Gen != c.gen || !c.alive() && c.phase != killing {
		c.do(fmt.Sprintf("it came too late for generation %d", e.Gen))
		return
	}
	c.nodes[e.Node].quiet = true
	c.ends.stuck += e.Stuck
	c.do(fmt.Sprintf("node %d is clear", e.Node))
	c.settleWhenQuiet(now)
}

func (c *Control) settleWhenQuiet(now time.Duration) {
	for _, n := range c.nodes {
		if !n.quiet {
			return
		}
	}
	c.settle(now, "the generation is over")
}

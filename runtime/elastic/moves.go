package elastic

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// Event is what the control plane is told. Its String is how histories write it.
type Event interface{ String() string }

type (
	// Begin is the first event.
	Begin struct{}
	// Joined says that a node's agent is there.
	Joined struct{ Node int }
	// Lost says that a node's agent is gone and its ranks with it.
	Lost struct{ Node int }
	// Listening says that rank 0's node has a socket for the store.
	Listening struct{ Gen int }
	// Up says that a node's ranks were all started.
	Up struct{ Gen, Node int }
	// Exited says that a rank ended.
	Exited struct {
		Gen, Rank int
		Exit      launch.Exit
		Report    bool // it left an error file
		Victim    bool // in which it blames a peer
		Permanent bool // or says that another try would end the same way
		Crashed   bool // a Go panic, whose exit code 2 does not mean ExitUsage
		Hung      bool // it was killed because it completed nothing any more
		Apart     bool // it cannot reach the rank Peer, though that may live
		Peer      int
	}
	// Quiet says that nothing of a generation is left on a node, but for processes
	// that would not die.
	Quiet struct{ Gen, Node, Stuck int }
	// Ready says that a node's ranks wait for a generation to join.
	Ready struct{ Node int }
	// Paused says that a rank has ended its step as asked.
	Paused struct{ Gen, Rank int }
	// Stranded says that a rank lives on, but its world is broken. It blames Peer
	// (-1: nobody), who was Late if it did not come rather than break off.
	Stranded struct {
		Gen, Rank, Peer int
		Late            bool
		Apart           bool // the peer cannot be reached, though it may live
	}
	// Offered adds a node to those of the settings. A guest has come by itself, and
	// joins next; others are to be called.
	Offered struct {
		Ranks int
		Guest bool
	}
	// Drain asks for a node to be taken out.
	Drain struct{ Node int }
	// Signalled says that the launcher got a signal.
	Signalled struct{ Signal syscall.Signal }
	// Expired says that the time of the last Timer has come.
	Expired struct{}
	// Cancelled says that the job is to end at once.
	Cancelled struct{}
)

func (Begin) String() string       { return "begin" }
func (e Joined) String() string    { return fmt.Sprintf("joined node=%d", e.Node) }
func (e Lost) String() string      { return fmt.Sprintf("lost node=%d", e.Node) }
func (e Listening) String() string { return fmt.Sprintf("listening gen=%d", e.Gen) }
func (e Up) String() string        { return fmt.Sprintf("up gen=%d node=%d", e.Gen, e.Node) }
func (e Quiet) String() string {
	text := fmt.Sprintf("quiet gen=%d node=%d", e.Gen, e.Node)
	if e.Stuck > 0 {
		text += fmt.Sprintf(" stuck=%d", e.Stuck)
	}
	return text
}
func (e Ready) String() string  { return fmt.Sprintf("ready node=%d", e.Node) }
func (e Paused) String() string { return fmt.Sprintf("paused gen=%d rank=%d", e.Gen, e.Rank) }
func (e Drain) String() string  { return fmt.Sprintf("drain node=%d", e.Node) }
func (e Stranded) String() string {
	text := fmt.Sprintf("stranded gen=%d rank=%d peer=%d", e.Gen, e.Rank, e.Peer)
	if e.Late {
		text += " late"
	}
	if e.Apart {
		text += " apart"
	}
	return text
}
func (e Offered) String() string {
	text := fmt.Sprintf("offered ranks=%d", e.Ranks)
	if e.Guest {
		text += " guest"
	}
	return text
}
func (e Signalled) String() string { return "signal " + launch.SignalName(e.Signal) }
func (Expired) String() string     { return "expired" }
func (Cancelled) String() string   { return "cancelled" }
func (e Exited) String() string {
	text := fmt.Sprintf("exited gen=%d rank=%d", e.Gen, e.Rank)
	if e.Exit.Signal != 0 {
		text += " signal=" + launch.SignalName(e.Exit.Signal)
	} else {
		text += fmt.Sprintf(" code=%d", e.Exit.Code)
	}
	for _, mark := range []struct {
		set  bool
		name string
	}{{e.Report, "report"}, {e.Victim, "victim"}, {e.Permanent, "permanent"}, {e.Crashed, "crashed"}, {e.Hung, "hung"}, {e.Apart, fmt.Sprintf("apart=%d", e.Peer)}} {
		if mark.set {
			text += " " + mark.name
		}
	}
	return text
}

// Action is what the control plane wants done. Its String is how histories write it.
type Action interface{ String() string }

type (
	// Join asks for a node's agent to be started.
	Join struct{ Node int }
	// Listen asks rank 0's node for a socket.
	Listen struct{ Gen, Node int }
	// Start begins a generation on nodes, in the order of their ranks. Ranks that
	// live join it with Keep; all others are started.
	Start struct {
		Gen   int
		Nodes []int
		Keep  bool
	}
	// Warm asks a node to start its ranks, for a generation to come.
	Warm struct{ Node int }
	// Pause asks all ranks to wait after their step.
	Pause struct{ Gen int }
	// Replace kills a rank that hangs, for which another waited in vain.
	Replace struct{ Gen, Rank, For int }
	// Release ends a node's ranks, which the world goes on without, and its agent.
	Release struct{ Node int }
	// Membership tells that a node has come or gone.
	Membership struct {
		Node   int
		Came   bool
		Reason string
	}
	// Forward sends a signal to each rank.
	Forward struct {
		Gen    int
		Signal syscall.Signal
	}
	// Kill kills all ranks, and what they left, at once.
	Kill struct{ Gen int }
	// Timer asks for Expired at a time; it replaces the one before. 0: none.
	Timer struct{ At time.Duration }
	// Blame says which ending was the root cause: a rank's, or, with Rank -1, a node's.
	Blame struct{ Gen, Rank, Node int }
	// Recovered says that the generation after a failure is up.
	Recovered struct {
		Gen    int
		Failed time.Duration // when the failure was seen
	}
	// Finish ends the job.
	Finish struct{ Code int }
)

func (a Join) String() string   { return fmt.Sprintf("join node=%d", a.Node) }
func (a Listen) String() string { return fmt.Sprintf("listen gen=%d node=%d", a.Gen, a.Node) }
func (a Warm) String() string   { return fmt.Sprintf("warm node=%d", a.Node) }
func (a Pause) String() string  { return fmt.Sprintf("pause gen=%d", a.Gen) }
func (a Replace) String() string {
	return fmt.Sprintf("replace gen=%d rank=%d for=%d", a.Gen, a.Rank, a.For)
}
func (a Release) String() string { return fmt.Sprintf("release node=%d", a.Node) }
func (a Start) String() string {
	text := fmt.Sprintf("start gen=%d nodes=%s", a.Gen, strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Nodes), " ", ","), "[]"))
	if a.Keep {
		text += " keep"
	}
	return text
}
func (a Membership) String() string {
	if a.Came {
		return fmt.Sprintf("member node=%d came", a.Node)
	}
	return fmt.Sprintf("member node=%d left", a.Node)
}
func (a Forward) String() string { return "forward " + launch.SignalName(a.Signal) }
func (a Kill) String() string    { return fmt.Sprintf("kill gen=%d", a.Gen) }
func (a Timer) String() string {
	if a.At == 0 {
		return "timer off"
	}
	return fmt.Sprintf("timer at=%v", a.At)
}
func (a Blame) String() string {
	if a.Rank < 0 {
		return fmt.Sprintf("blame node=%d", a.Node)
	}
	return fmt.Sprintf("blame rank=%d", a.Rank)
}
func (a Recovered) String() string {
	return fmt.Sprintf("recovered gen=%d failed=%v", a.Gen, a.Failed)
}
func (a Finish) String() string { return fmt.Sprintf("finish code=%d", a.Code) }

// describe writes a decision on one line.
func describe(actions []Action, reason string) string {
	if len(actions) == 0 {
		return "nothing: " + reason
	}
	var parts []string
	for _, a := range actions {
		parts = append(parts, a.String())
	}
	return strings.Join(parts, ", ") + ": " + reason
}

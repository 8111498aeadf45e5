package elastic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// TestRandomLiveHistories lets nodes and ranks that live through failures
// behave at random, and checks after every step what must always hold. A world
// in which nothing can happen any more, and that is not over, hangs.
func TestRandomLiveHistories(t *testing.T) {
	ends := map[int]int{}
	for seed := range uint64(20000) {
		w := newLiveWorld(seed)
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.history, "\n"))
		}
		ends[w.code]++
	}
	for _, code := range []int{launch.ExitOK, launch.ExitGaveUp, launch.ExitRendezvous, launch.ExitSignal(syscall.SIGINT)} {
		if ends[code] == 0 {
			t.Errorf("no history ended with code %d: %v", code, ends)
		}
	}
}

// process is what a rank's process does.
type processState int

const (
	none processState = iota
	unplaced
	works
	asleep // paused
	broken
	dying // killed
)

// liveNode is a machine and its processes.
type liveNode struct {
	agent     bool
	coming    bool
	gen       int // its processes were told of
	processes []processState
	owesQuiet bool
	released  bool
}

// liveWorld is what the control plane controls.
type liveWorld struct {
	rng     *rand.Rand
	set     Settings
	control *Control
	now     time.Duration
	timer   time.Duration
	history []string

	nodes   []*liveNode
	gen     int
	order   []int
	owes    []Event
	pausing bool
	asked   bool // to stop
	trouble int  // failures that may still happen
	code    int
	over    bool
}

func newLiveWorld(seed uint64) *liveWorld {
	rng := rand.New(rand.NewPCG(seed, 11))
	set := Settings{Live: true, Store: true, MaxRestarts: rng.IntN(6), Window: time.Minute, Grace: 5 * time.Second}
	w := &liveWorld{rng: rng, gen: -1, trouble: rng.IntN(12)}
	for range 1 + rng.IntN(4) {
		n := 1 + rng.IntN(3)
		set.Ranks = append(set.Ranks, n)
		w.nodes = append(w.nodes, &liveNode{processes: make([]processState, n)})
	}
	set.MinNodes = 1 + rng.IntN(len(set.Ranks))
	if rng.IntN(2) == 0 {
		set.MaxNodes = set.MinNodes + rng.IntN(3)
	}
	w.set, w.control = set, NewControl(set)
	return w
}

func (w *liveWorld) run() error {
	err := w.tell(Begin{})
	for range 5000 {
		if err != nil || w.over {
			return err
		}
		w.now += time.Duration(w.rng.IntN(300)) * time.Millisecond
		if w.timer != 0 && w.now >= w.timer {
			w.timer = 0
			err = w.tell(Expired{})
			continue
		}
		e := w.happen()
		switch {
		case e != nil:
			err = w.tell(e)
		case !w.busy() && w.timer == 0:
			return fmt.Errorf("it hangs")
		}
	}
	return fmt.Errorf("it does not end")
}

// busy tells whether anything can still happen by itself.
func (w *liveWorld) busy() bool {
	if len(w.owes) > 0 {
		return true
	}
	for _, n := range w.nodes {
		if n.owesQuiet || slices.ContainsFunc(n.processes, func(p processState) bool { return p == works || p == dying }) {
			return true
		}
	}
	return false
}

func (w *liveWorld) happen() Event {
	switch n := w.rng.IntN(100); {
	case n < 3 && w.trouble > 0:
		w.trouble--
		return w.misfortune()
	case n < 50 && len(w.owes) > 0:
		i := w.rng.IntN(len(w.owes))
		e := w.owes[i]
		w.owes = slices.Delete(w.owes, i, i+1)
		return w.arrive(e)
	default:
		return w.work()
	}
}

// misfortune is a signal, a lost node, a drained one or a guest.
func (w *liveWorld) misfortune() Event {
	i := w.rng.IntN(len(w.nodes))
	switch w.rng.IntN(6) {
	case 0:
		return Signalled{syscall.SIGINT}
	case 1:
		return Drain{i}
	case 2:
		ranks := 1 + w.rng.IntN(2)
		w.nodes = append(w.nodes, &liveNode{coming: true, processes: make([]processState, ranks)})
		w.owes = append(w.owes, Joined{len(w.nodes) - 1})
		return Offered{ranks, true}
	case 3:
		return Cancelled{}
	default:
		n := w.nodes[i]
		if !n.agent {
			return nil
		}
		w.loseAgent(i)
		return Lost{i}
	}
}

// loseAgent ends all that a node does.
func (w *liveWorld) loseAgent(i int) {
	n := w.nodes[i]
	n.agent, n.coming, n.owesQuiet = false, false, false
	clear(n.processes)
	w.owes = slices.DeleteFunc(w.owes, func(e Event) bool {
		switch e := e.(type) {
		case Up:
			return e.Node == i
		case Ready:
			return e.Node == i
		case Joined:
			return e.Node == i
		case Listening:
			return len(w.control.order) > 0 && w.control.order[0] == i
		}
		return false
	})
}

// arrive lets an answer come that was under way.
func (w *liveWorld) arrive(e Event) Event {
	if j, ok := e.(Joined); ok {
		n := w.nodes[j.Node]
		n.agent, n.coming = true, false
		if n.released {
			return nil
		}
		if w.rng.IntN(8) == 0 {
			n.agent = false
			return Lost{j.Node}
		}
	}
	return e
}

// rankOf is the rank of a node's first process, -1 if it has none.
func (w *liveWorld) rankOf(node int) int {
	first := 0
	for _, i := range w.order {
		if i == node {
			return first
		}
		first += len(w.nodes[i].processes)
	}
	return -1
}

// work lets one process do what comes next for it.
func (w *liveWorld) work() Event {
	i := w.rng.IntN(len(w.nodes))
	n := w.nodes[i]
	if n.owesQuiet && !slices.ContainsFunc(n.processes, func(p processState) bool { return p != none }) {
		n.owesQuiet = false
		return Quiet{Gen: n.gen, Node: i}
	}
	local := w.rng.IntN(len(n.processes))
	first := w.rankOf(i)
	if first < 0 || !n.agent {
		return nil
	}
	rank := first + local
	end := func(e Exited) Event {
		n.processes[local] = none
		e.Gen, e.Rank = n.gen, rank
		return e
	}
	switch state := n.processes[local]; {
	case state == dying:
		return end(Exited{Exit: launch.Exit{Signal: syscall.SIGKILL}})
	case state != works && state != asleep:
		return nil
	case w.trouble > 0 && w.rng.IntN(25) == 0:
		w.trouble--
		return w.fault(n, local, rank, end)
	case state == asleep:
		return nil
	case w.peersBroken():
		n.processes[local] = broken
		return Stranded{Gen: n.gen, Rank: rank, Peer: -1}
	case w.asked:
		return end(Exited{Exit: launch.Exit{Code: launch.ExitSignal(syscall.SIGTERM)}})
	case w.pausing && n.gen == w.gen:
		n.processes[local] = asleep
		return Paused{n.gen, rank}
	case w.trouble == 0 && w.allWork():
		return end(Exited{})
	case w.done():
		return end(Exited{})
	}
	return nil
}

// fault ends a process in some way, or strands it.
func (w *liveWorld) fault(n *liveNode, local, rank int, end func(Exited) Event) Event {
	switch w.rng.IntN(6) {
	case 0:
		return end(Exited{Exit: launch.Exit{Code: launch.ExitFailed}, Report: true, Permanent: true})
	case 1:
		return end(Exited{Exit: launch.Exit{Code: launch.ExitFailed}, Report: true, Victim: true})
	case 2:
		n.processes[local] = broken
		return Stranded{Gen: n.gen, Rank: rank, Peer: w.rng.IntN(4), Late: w.rng.IntN(2) == 0}
	}
	return end(Exited{Exit: launch.Exit{Signal: syscall.SIGSEGV}})
}

// peersBroken tells whether the generation at hand cannot go on.
func (w *liveWorld) peersBroken() bool {
	if w.done() {
		return false
	}
	for _, i := range w.order {
		n := w.nodes[i]
		if !n.agent || n.gen != w.gen || slices.ContainsFunc(n.processes, func(p processState) bool { return p == none || p == broken }) {
			return true
		}
	}
	return false
}

func (w *liveWorld) allWork() bool { return !w.peersBroken() && !w.pausing && !w.asked }

// done tells whether some process has ended its work in this generation.
func (w *liveWorld) done() bool {
	return len(w.control.ends.list) > 0 && w.control.finishing() && w.allClean()
}

func (w *liveWorld) allClean() bool {
	return !slices.ContainsFunc(w.control.ends.list, func(e ending) bool { return e.kind != clean })
}

func (w *liveWorld) tell(e Event) error {
	actions, reason := w.control.Step(w.now, e)
	w.history = append(w.history, fmt.Sprintf("%v %v -> %s", w.now, e, describe(actions, reason)))
	if reason == "" {
		return fmt.Errorf("a decision without a reason")
	}
	for _, a := range actions {
		if w.over {
			return fmt.Errorf("%v after the end", a)
		}
		if err := w.obey(a); err != nil {
			return fmt.Errorf("%v: %w", a, err)
		}
	}
	return nil
}

func (w *liveWorld) obey(a Action) error {
	switch a := a.(type) {
	case Join:
		n := w.nodes[a.Node]
		if n.agent || n.coming {
			return fmt.Errorf("the node is there or on its way")
		}
		n.coming = true
		w.owes = append(w.owes, Joined{a.Node})
	case Listen:
		if !w.nodes[a.Node].agent {
			return fmt.Errorf("the node is not there")
		}
		w.owes = append(w.owes, Listening{a.Gen})
	case Start:
		return w.begin(a)
	case Warm:
		n := w.nodes[a.Node]
		if !n.agent || slices.ContainsFunc(n.processes, func(p processState) bool { return p != none }) {
			return fmt.Errorf("the node is not there or runs ranks")
		}
		for i := range n.processes {
			n.processes[i] = unplaced
		}
		n.owesQuiet = true
		w.owes = append(w.owes, Ready{a.Node})
	case Pause:
		if a.Gen != w.gen {
			return fmt.Errorf("generation %d runs", w.gen)
		}
		w.pausing = true
	case Forward:
		w.asked = w.asked || a.Signal == syscall.SIGTERM
	case Replace:
		for _, i := range w.order {
			if at := a.Rank - w.rankOf(i); at >= 0 && at < len(w.nodes[i].processes) && w.nodes[i].processes[at] != none {
				w.nodes[i].processes[at] = dying
			}
		}
	case Release:
		w.loseAgent(a.Node)
		w.nodes[a.Node].released = true
	case Kill:
		w.kill(a.Gen)
	case Timer:
		if a.At != 0 && a.At <= w.now {
			return fmt.Errorf("in the past")
		}
		w.timer = a.At
	case Recovered:
		if a.Failed > w.now || a.Gen != w.gen || a.Gen == 0 {
			return fmt.Errorf("at %v in generation %d", w.now, w.gen)
		}
	case Finish:
		w.code, w.over = a.Code, true
		return w.checkEnd()
	}
	return nil
}

// kill ends all processes; a node without any says so again.
func (w *liveWorld) kill(gen int) {
	for _, n := range w.nodes {
		if !n.agent {
			continue
		}
		n.gen, n.owesQuiet = gen, true
		for i, p := range n.processes {
			if p != none {
				n.processes[i] = dying
			}
			if p == unplaced {
				n.processes[i] = none
			}
		}
	}
}

// begin checks that a generation may start, and starts it.
func (w *liveWorld) begin(s Start) error {
	switch {
	case s.Gen <= w.gen:
		return fmt.Errorf("generation %d was before", w.gen)
	case len(s.Nodes) < w.set.MinNodes || w.set.MaxNodes > 0 && len(s.Nodes) > w.set.MaxNodes:
		return fmt.Errorf("%d nodes, want %d to %d", len(s.Nodes), w.set.MinNodes, w.set.MaxNodes)
	}
	seen := map[int]bool{}
	for _, i := range s.Nodes {
		n := w.nodes[i]
		if seen[i] || !n.agent {
			return fmt.Errorf("node %d is there twice or not at all", i)
		}
		seen[i] = true
		n.gen, n.owesQuiet = s.Gen, true
		for at, p := range n.processes {
			if p != dying {
				n.processes[at] = works
			}
		}
		w.owes = append(w.owes, Up{s.Gen, i})
	}
	for i, n := range w.nodes {
		if !seen[i] && slices.ContainsFunc(n.processes, func(p processState) bool { return p == works || p == asleep || p == broken }) {
			return fmt.Errorf("ranks of node %d are left behind", i)
		}
	}
	w.gen, w.order, w.pausing, w.asked = s.Gen, s.Nodes, false, false
	return nil
}

func (w *liveWorld) checkEnd() error {
	for i, n := range w.nodes {
		if slices.ContainsFunc(n.processes, func(p processState) bool { return p == works }) {
			return fmt.Errorf("ended with ranks at work on node %d", i)
		}
	}
	return nil
}

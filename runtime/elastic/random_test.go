package elastic

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// TestRandomHistories lets the control plane run worlds whose nodes and ranks
// behave at random, and checks after every step what must always hold.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(3000) {
		w := newWorld(seed)
		if err := w.live(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(w.history, "\n"))
		}
	}
}

// world is what the control plane controls.
type world struct {
	rng     *rand.Rand
	set     Settings
	control *Control
	now     time.Duration
	timer   time.Duration
	history []string

	joined  []bool
	joining []bool
	gen     int            // of the last Start, -1 before
	alive   map[int]string // ranks of gen: "runs", "asked" to stop or "killed"
	clearup []bool         // nodes that still owe Quiet
	owes    []Event        // answers that are under way
	failed  bool           // some rank of gen did not end cleanly
	blames  int            // since the last Start
	stopped bool
	cancel  bool
	code    int
	over    bool
}

func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 7))
	set := Settings{Store: rng.IntN(2) == 0, MaxRestarts: rng.IntN(4), OwnCode: rng.IntN(4) == 0}
	for range 1 + rng.IntN(3) {
		set.Ranks = append(set.Ranks, 1+rng.IntN(3))
	}
	if rng.IntN(2) == 0 {
		set.Window = time.Duration(1+rng.IntN(20)) * time.Second
	}
	if rng.IntN(2) == 0 {
		set.Grace = time.Duration(1+rng.IntN(5)) * time.Second
	}
	n := len(set.Ranks)
	return &world{rng: rng, set: set, control: NewControl(set), joined: make([]bool, n), joining: make([]bool, n),
		clearup: make([]bool, n), gen: -1, alive: map[int]string{}}
}

// live runs the world to its end.
func (w *world) live() error {
	if err := w.tell(Begin{}); err != nil {
		return err
	}
	for range 2000 {
		if w.over {
			return w.checkEnd()
		}
		w.now += time.Duration(w.rng.IntN(400)) * time.Millisecond
		if w.timer != 0 && w.now >= w.timer {
			w.timer = 0
			if err := w.tell(Expired{}); err != nil {
				return err
			}
			continue
		}
		if e := w.happen(); e != nil {
			if err := w.tell(e); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("it does not end")
}

// happen makes something happen that can; nil: nothing does now.
func (w *world) happen() Event {
	switch n := w.rng.IntN(200); {
	case n == 0:
		w.cancel = true
		return Cancelled{}
	case n <= 2:
		w.stopped = true
		return Signalled{[]syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[w.rng.IntN(2)]}
	case n == 3:
		return Signalled{syscall.SIGUSR1}
	case n <= 5:
		return w.loseNode(w.rng.IntN(len(w.joined)))
	case n < 100 && len(w.owes) > 0:
		i := w.rng.IntN(len(w.owes))
		e := w.owes[i]
		w.owes = append(w.owes[:i], w.owes[i+1:]...)
		if j, ok := e.(Joined); ok {
			w.joined[j.Node], w.joining[j.Node] = true, false
		}
		return e
	case n < 160:
		return w.endRank()
	}
	return nil
}

// nodeOf and ranksOf place ranks on nodes.
func (w *world) nodeOf(rank int) int {
	for i, n := range w.set.Ranks {
		if rank < n {
			return i
		}
		rank -= n
	}
	panic("no such rank")
}

func (w *world) ranksOf(node int) (ranks []int) {
	for r := range w.alive {
		if w.nodeOf(r) == node {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// loseNode ends an agent: its ranks die, its answers never come.
func (w *world) loseNode(node int) Event {
	if !w.joined[node] && !w.joining[node] {
		return nil
	}
	w.joined[node], w.joining[node] = false, false
	w.failed = w.failed || w.clearup[node]
	w.clearup[node] = false
	for _, r := range w.ranksOf(node) {
		delete(w.alive, r)
	}
	var left []Event
	for _, e := range w.owes {
		switch e := e.(type) {
		case Joined:
			if e.Node == node {
				continue
			}
		case Up:
			if e.Node == node {
				continue
			}
		case Quiet:
			if e.Node == node {
				continue
			}
		case Listening:
			if node == 0 {
				continue
			}
		}
		left = append(left, e)
	}
	w.owes = left
	return Lost{node}
}

// endRank ends some rank, or reports a node whose ranks have all ended.
func (w *world) endRank() Event {
	for node, owed := range w.clearup {
		if owed && len(w.ranksOf(node)) == 0 {
			w.clearup[node] = false
			return Quiet{Gen: w.gen, Node: node}
		}
	}
	for rank := range w.set.total() {
		state, alive := w.alive[rank]
		if !alive || w.rng.IntN(3) > 0 {
			continue
		}
		e := Exited{Gen: w.gen, Rank: rank}
		switch n := w.rng.IntN(10); {
		case state == "killed" && n > 0:
			e.Exit.Signal = syscall.SIGKILL
		case state == "asked" && n > 1:
			e.Exit.Code = []int{0, 143}[w.rng.IntN(2)]
		case state == "asked":
			return nil // it takes its time
		case n < 5: // done
		case n < 7:
			e.Exit.Code, e.Report, e.Victim = 1, true, true
		case n == 7:
			e.Exit.Code, e.Report = launch.ExitUsage, w.rng.IntN(2) == 0
			e.Crashed = !e.Report
		default:
			e.Exit.Signal = syscall.SIGSEGV
		}
		w.failed = w.failed || e.Exit.Status() != 0 && e.Exit.Status() != 143
		delete(w.alive, rank)
		return e
	}
	return nil
}

func (s Settings) total() (n int) {
	for _, r := range s.Ranks {
		n += r
	}
	return n
}

// tell passes an event on and checks and obeys the answer.
func (w *world) tell(e Event) error {
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

func (w *world) obey(a Action) error {
	switch a := a.(type) {
	case Join:
		if w.joined[a.Node] || w.joining[a.Node] {
			return fmt.Errorf("the node is there or on its way")
		}
		w.joining[a.Node] = true
		w.owes = append(w.owes, Joined{a.Node})
	case Listen:
		w.owes = append(w.owes, Listening{a.Gen})
	case Start:
		return w.begin(a.Gen)
	case Forward:
		if a.Gen != w.gen {
			return fmt.Errorf("generation %d runs", w.gen)
		}
		for r := range w.alive {
			if a.Signal == syscall.SIGTERM {
				w.alive[r] = "asked"
			}
		}
	case Kill:
		if a.Gen != w.gen {
			return fmt.Errorf("generation %d runs", w.gen)
		}
		for r := range w.alive {
			w.alive[r] = "killed"
		}
	case Timer:
		if a.At != 0 && a.At <= w.now {
			return fmt.Errorf("in the past")
		}
		w.timer = a.At
	case Blame:
		w.blames++
	case Recovered:
		if a.Failed > w.now || a.Gen != w.gen || a.Gen == 0 {
			return fmt.Errorf("at %v in generation %d", w.now, w.gen)
		}
	case Finish:
		w.code, w.over = a.Code, true
	}
	return nil
}

// begin checks that a generation may start, and starts it.
func (w *world) begin(gen int) error {
	for i := range w.joined {
		if !w.joined[i] || w.clearup[i] {
			return fmt.Errorf("node %d is not ready", i)
		}
	}
	switch {
	case len(w.alive) > 0:
		return fmt.Errorf("ranks of generation %d are alive", w.gen)
	case gen <= w.gen:
		return fmt.Errorf("generation %d was before", w.gen)
	case w.stopped || w.cancel:
		return fmt.Errorf("a stop was asked for")
	case w.gen >= 0 && w.blames == 0:
		return fmt.Errorf("nobody was blamed for the end of generation %d", w.gen)
	case gen > 0 && w.set.Window == 0 && gen > w.set.MaxRestarts:
		return fmt.Errorf("more than %d restarts", w.set.MaxRestarts)
	}
	w.gen, w.failed, w.blames = gen, false, 0
	for r := range w.set.total() {
		w.alive[r] = "runs"
	}
	for i := range w.clearup {
		w.clearup[i] = true
		w.owes = append(w.owes, Up{gen, i})
	}
	return nil
}

// checkEnd checks the end against what really happened.
func (w *world) checkEnd() error {
	switch {
	case len(w.alive) > 0:
		return fmt.Errorf("ended with ranks alive")
	case w.code == launch.ExitOK && (w.failed || w.stopped || w.cancel || w.gen < 0):
		return fmt.Errorf("ended well, though it did not")
	case w.code > 128 && w.code != 139 && !w.stopped:
		return fmt.Errorf("ended by a signal that did not come")
	case w.code == launch.ExitGaveUp && w.blames == 0:
		return fmt.Errorf("gave up without a cause")
	}
	return nil
}

package elastic

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"ddp/runtime/launch"
)

// perform carries out one action of the control plane.
func (l *launcher) perform(action Action) {
	switch a := action.(type) {
	case Join:
		l.join(a.Node)
	case Listen:
		// Programs of others open MASTER_PORT themselves.
		l.nodes[a.Node].send(command{Listen: &listenOrder{a.Gen, l.spec.Command == nil, l.spec.Port}})
	case Start:
		l.start(a)
	case Warm:
		// A world of their own, until they get their places.
		l.nodes[a.Node].send(command{Start: &startOrder{Gen: l.result.Generations, Warm: true, WorldSize: l.spec.Nodes[a.Node].Ranks, Nodes: 1}})
	case Pause:
		l.sendAll(command{Pause: &generationRef{a.Gen}})
	case Replace:
		l.sendAll(command{Replace: &replaceOrder{a.Gen, a.Rank, a.For}})
	case Release:
		l.release(a.Node)
	case Membership:
		l.membership(a)
	case Forward:
		l.sendAll(command{Signal: &signalOrder{a.Gen, int(a.Signal)}})
	case Kill:
		l.sendAll(command{Kill: &generationRef{a.Gen}})
	case Timer:
		l.timer.Stop()
		if a.At > 0 {
			l.timer.Reset(a.At - time.Since(l.began))
		}
	case Blame:
		l.blame(a)
	case Recovered:
		if l.spec.OnRecovery != nil {
			failed := l.began.Add(a.Failed)
			l.output.call(func() { l.spec.OnRecovery(a.Gen, func() time.Duration { return time.Since(failed) }) })
		}
	case Finish:
		l.finished = true
		l.result.ExitCode = a.Code
	}
}

// join starts a node's agent.
func (l *launcher) join(index int) {
	slot, n := l.nodes[index], l.spec.Nodes[index]
	s := l.setup(index)
	slot.tries++
	var err error
	switch {
	case index == l.home:
		slot.node, err = openInProcess(s, l.output.line, l.inbox)
	case n.local():
		slot.node, err = openProcess(s, l.output.line, l.inbox)
	default:
		slot.node = openSSH(n.Host, s, l.tell, l.output.line, l.inbox)
	}
	if err == nil {
		return
	}
	slot.node = nil
	if index == l.home {
		l.fail(err) // nothing can run here at all
	}
	l.inbox.put(message{node: index, err: err})
}

// setup is what the agent of a node is told.
func (l *launcher) setup(index int) setup {
	s := l.spec
	return setup{Version: protocolVersion, RunID: s.RunID, Tree: l.tree, Node: index, Ranks: s.Nodes[index].Ranks,
		MaxRestarts: s.MaxRestarts, Command: s.Command, Role: s.Role, Env: exactly(s.Env), Dir: []byte(s.Dir), Payload: s.Payload, Local: s.allLocal() && s.Guests == nil,
		Sweep: l.nodes[index].tries > 0, Live: s.Live, HangTimeout: s.HangTimeout, Grace: s.Grace, Lease: s.Lease}
}

// tell tells the user something that is no failure. It may be called from any goroutine.
func (l *launcher) tell(text string) {
	if l.spec.OnNote != nil {
		l.output.call(func() { l.spec.OnNote(text) })
	}
}

// start begins a generation with a new secret.
func (l *launcher) start(a Start) {
	l.output.begin(a.Gen)
	l.order = a.Nodes
	l.result.Generations, l.result.Restarts = a.Gen, l.control.Restarts()
	l.secret = make([]byte, 32)
	rand.Read(l.secret)
	order := startOrder{Gen: a.Gen, Keep: a.Keep, Nodes: len(a.Nodes), Restarts: l.result.Restarts, Secret: l.secret, MasterPort: l.masterPort}
	for _, i := range a.Nodes {
		order.WorldSize += l.spec.Nodes[i].Ranks
	}
	if l.masterPort != 0 {
		order.MasterAddr = l.masterAddr()
	}
	for nth, i := range a.Nodes {
		mine := order
		mine.NodeRank = nth
		l.nodes[i].send(command{Start: &mine})
		order.FirstRank += l.spec.Nodes[i].Ranks
	}
}

// release ends a node that the job goes on without.
func (l *launcher) release(index int) {
	slot := l.nodes[index]
	if n := slot.node; n != nil {
		slot.node = nil
		l.closing.Go(n.close)
	}
}

// membership tells of a node that came or went.
func (l *launcher) membership(a Membership) {
	if l.spec.OnMember == nil {
		return
	}
	world := 0
	for _, i := range l.control.order {
		if l.control.nodes[i].at == enlisted {
			world += l.spec.Nodes[i].Ranks
		}
	}
	m := Member{Host: l.hostOf(a.Node), Came: a.Came, WorldSize: world, Reason: a.Reason}
	l.output.call(func() { l.spec.OnMember(m) })
}

// masterAddr is where all nodes reach rank 0: the address over which ssh reached
// it, or reached others from it, rather than a guess from a host's name.
func (l *launcher) masterAddr() string {
	if len(l.order) == 1 || l.spec.allLocal() {
		return "127.0.0.1"
	}
	first := l.order[0]
	for _, i := range l.order {
		switch h := l.nodes[i].hello; {
		case l.spec.Nodes[i].local():
		case i == first && h.OwnAddr != "":
			return h.OwnAddr
		case i != first && l.spec.Nodes[first].local() && h.LauncherAddr != "":
			return h.LauncherAddr
		}
	}
	return l.nodes[first].hello.Host
}

func (l *launcher) sendAll(c command) {
	for _, slot := range l.nodes {
		slot.send(c)
	}
}

// send passes a command to the node's agent, if there is one; that there is
// none is known to the control plane already.
func (s *nodeSlot) send(c command) {
	if s.node != nil {
		s.node.send(c)
	}
}

// blame tells the user of the root cause.
func (l *launcher) blame(b Blame) {
	var f Failure
	if b.Rank < 0 {
		f = l.lostNode(b)
	} else {
		f = l.failedRank(b)
	}
	l.result.Failure = &f
	if l.spec.OnFailure != nil {
		l.output.call(func() { l.spec.OnFailure(f) })
	}
}

func (l *launcher) lostNode(b Blame) Failure {
	slot := l.nodes[b.Node]
	rank := max(0, l.firstRank(b.Node))
	what, why := "the agent of node %d was lost: %s", slot.lost
	if slot.hello.Version == 0 {
		what = "node %d cannot be used: %s"
	}
	if why == "" {
		why = silence(l.spec.Nodes[b.Node].Host)
	}
	return Failure{Generation: b.Gen, Rank: rank, Host: l.hostOf(b.Node), ExitCode: launch.ExitFailed, Time: time.Now(),
		Cause: fmt.Sprintf(what, b.Node, why), LogTail: l.output.tail(rank)}
}

// silence is the cause when nothing has come from a host, nor an end of it.
func silence(host string) string {
	why := fmt.Sprintf("nothing came from it for %v", JoinTime)
	if host != "" {
		why += fmt.Sprintf(" (hint: its shell may be slow to start: `time ssh %s true`)", host)
	}
	return why
}

func (l *launcher) failedRank(b Blame) Failure {
	e := l.endings[place{b.Gen, b.Rank}]
	if e == nil {
		e = &exitedReport{Gen: b.Gen, Rank: b.Rank}
	}
	f := Failure{Generation: b.Gen, Rank: b.Rank, Host: l.hostOf(l.nodeOf(b.Rank)), PID: e.PID, ExitCode: e.Exit.Status(),
		Signal: launch.SignalName(e.Exit.Signal), LogTail: l.output.tail(b.Rank), Time: time.Now()}
	said := launch.ParseErrorFile(e.ErrorFile)
	f.Cause = cause(e, said)
	if said != nil {
		f.Step = said.Step
		if !said.Time.IsZero() {
			f.Time = said.Time
		}
	}
	var errs [2]error
	f.ErrorFile, errs[0] = l.output.keep(b.Rank, "error.json", e.ErrorFile)
	f.FlightFile, errs[1] = l.output.keep(b.Rank, "flight.txt", e.Flight)
	f.LastOperation = e.LastOperation
	for _, err := range errs {
		if err != nil {
			f.Cause += fmt.Sprintf(" (%v)", err)
		}
	}
	return f
}

// cause puts a rank's end in words, on one line.
func cause(e *exitedReport, said *launch.Failure) string {
	if e.Hung != "" {
		return e.Hung
	}
	text := e.Exit.String()
	if e.Alive {
		text = "its world broke"
	}
	if e.OutOfMemory {
		text += " (the kernel ran out of memory)"
	}
	switch {
	case said != nil && said.Message != "":
		first, _, _ := strings.Cut(said.Message, "\n")
		text += ": " + first
	case e.Panic != "":
		text += ": " + e.Panic
	}
	return text
}

// nodeOf is the node of a rank of the generation at hand.
func (l *launcher) nodeOf(rank int) int {
	for _, i := range l.order {
		if rank < l.spec.Nodes[i].Ranks {
			return i
		}
		rank -= l.spec.Nodes[i].Ranks
	}
	return 0
}

// firstRank is the first rank of a node of the generation at hand, -1 for none.
func (l *launcher) firstRank(node int) int {
	first := 0
	for _, i := range l.order {
		if i == node {
			return first
		}
		first += l.spec.Nodes[i].Ranks
	}
	return -1
}

// hostOf is the node's name for people.
func (l *launcher) hostOf(index int) string {
	if host := l.spec.Nodes[index].Host; host != "" && host != "localhost" {
		return host
	}
	return l.nodes[index].hello.Host
}

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
		l.nodes[0].send(command{Listen: &listenOrder{a.Gen, l.spec.Command == nil}})
	case Start:
		l.start(a.Gen)
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
	if index == l.home {
		slot.node, err = openInProcess(s, l.output.line, l.inbox)
	} else {
		slot.node, err = openProcess(n, l.spec.Program, s, l.output.line, l.inbox)
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
	first := 0
	for _, n := range l.spec.Nodes[:index] {
		first += n.Ranks
	}
	return setup{Version: protocolVersion, RunID: l.spec.RunID, Tree: l.tree, Node: index, Nodes: len(l.spec.Nodes),
		FirstRank: first, Ranks: l.spec.Nodes[index].Ranks, WorldSize: l.spec.world(), MaxRestarts: l.spec.MaxRestarts,
		Command: l.spec.Command, Env: l.spec.Env, Dir: l.spec.Dir, Payload: l.spec.Payload,
		Local: l.spec.allLocal(), Sweep: l.nodes[index].tries > 0}
}

// start starts a generation with a new secret.
func (l *launcher) start(gen int) {
	l.fail(l.output.begin(gen))
	l.endings = map[int]*exitedReport{}
	l.result.Restarts = gen
	l.secret = make([]byte, 32)
	rand.Read(l.secret)
	order := startOrder{Gen: gen, Restarts: gen, Secret: l.secret, MasterPort: l.masterPort}
	if l.masterPort != 0 {
		order.MasterAddr = l.masterAddr()
	}
	l.sendAll(command{Start: &order})
}

// masterAddr is where all nodes reach rank 0: the address over which ssh reached
// it, or reached others from it, rather than a guess from a host's name.
func (l *launcher) masterAddr() string {
	if l.spec.allLocal() {
		return "127.0.0.1"
	}
	for i, n := range l.spec.Nodes {
		switch h := l.nodes[i].hello; {
		case n.local():
		case i == 0 && h.OwnAddr != "":
			return h.OwnAddr
		case i > 0 && l.spec.Nodes[0].local() && h.LauncherAddr != "":
			return h.LauncherAddr
		}
	}
	return l.nodes[0].hello.Host
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
	s := l.setup(b.Node)
	return Failure{Generation: b.Gen, Rank: s.FirstRank, Host: l.hostOf(b.Node), ExitCode: launch.ExitFailed, Time: time.Now(),
		Cause: fmt.Sprintf("the agent of node %d was lost: %s", b.Node, slot.lost), LogTail: l.output.tail(s.FirstRank)}
}

func (l *launcher) failedRank(b Blame) Failure {
	e := l.endings[b.Rank]
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
	path, err := l.output.keep(b.Rank, e.ErrorFile)
	f.ErrorFile = path
	if err != nil {
		f.Cause += fmt.Sprintf(" (%v)", err)
	}
	return f
}

// cause puts a rank's end in words, on one line.
func cause(e *exitedReport, said *launch.Failure) string {
	text := e.Exit.String()
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

func (l *launcher) nodeOf(rank int) int {
	for i, n := range l.spec.Nodes {
		if rank < n.Ranks {
			return i
		}
		rank -= n.Ranks
	}
	return 0
}

// hostOf is the node's name for people.
func (l *launcher) hostOf(index int) string {
	if host := l.spec.Nodes[index].Host; host != "" && host != "localhost" {
		return host
	}
	return l.nodes[index].hello.Host
}

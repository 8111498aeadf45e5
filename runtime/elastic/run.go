package elastic

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// Run runs a job to its end. It returns when no process of it is left. The error
// is about the Spec or about what stands in the way of running anything; how the
// job itself ended is in the Result. When ctx ends, everything is killed and
// Run returns its cause.
//
// The program must call AgentMain when launch.RoleVariable says so, since Run
// starts it anew in that role. One job at a time: orphans that come to this
// process while it runs are taken for the job's.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if err := spec.validate(); err != nil {
		return Result{}, err
	}
	l := newLauncher(spec)
	if err := l.openJournal(); err != nil {
		return Result{}, err
	}
	l.loop(ctx)
	l.shutdown()
	if l.err == nil && l.cancelled {
		l.err = context.Cause(ctx)
	}
	return l.result, l.err
}

// launcher drives one job: it feeds the control plane and carries out what that
// decides. Its fields belong to the goroutine of Run.
type launcher struct {
	spec    Spec
	began   time.Time
	control *Control
	output  *output
	inbox   *queue[message]
	timer   *time.Timer
	journal *os.File // nil: none

	tree  string // marks all processes of the job
	home  int    // index of the node whose agent is in this process; -1: none
	nodes []*nodeSlot

	order      []int  // nodes of the current generation, in the order of their ranks
	secret     []byte // of the current generation
	masterPort int
	endings    map[place]*exitedReport
	closing    sync.WaitGroup // nodes that were released

	result    Result
	finished  bool
	cancelled bool
	err       error // what stands in the way of running anything
}

// place names a rank of a generation.
type place struct{ gen, rank int }

// nodeSlot is what is known of a node.
type nodeSlot struct {
	node  node // nil: no agent
	tries int  // agents so far
	hello hello
	lost  string // why the last agent ended
}

func newLauncher(spec Spec) *launcher {
	token := make([]byte, 16)
	rand.Read(token)
	if spec.RunID == "" {
		spec.RunID = hex.EncodeToString(token)
	}
	l := &launcher{spec: spec, began: time.Now(), control: NewControl(spec.settings()), inbox: newQueue[message](),
		timer: time.NewTimer(time.Hour), tree: hex.EncodeToString(token) + ":", home: -1, endings: map[place]*exitedReport{}}
	l.timer.Stop()
	l.output = newOutput(&l.spec)
	for i, n := range spec.Nodes {
		if n.local() && l.home < 0 {
			l.home = i
		}
		l.nodes = append(l.nodes, &nodeSlot{})
	}
	return l
}

// loop runs until the control plane finishes the job.
func (l *launcher) loop(ctx context.Context) {
	done := ctx.Done()
	for _, g := range l.spec.First {
		l.welcome(g)
	}
	l.step(Begin{})
	for !l.finished {
		select {
		case <-l.inbox.ready:
			for _, m := range l.inbox.take() {
				l.receive(m)
			}
		case r := <-l.spec.Requests:
			l.request(r)
		case g := <-l.spec.Guests:
			l.welcome(g)
		case s := <-l.spec.Signals:
			l.signalled(s)
		case <-l.timer.C:
			l.step(Expired{})
		case <-done:
			done = nil
			l.cancelled = true
			l.step(Cancelled{})
		}
	}
}

func (l *launcher) signalled(s os.Signal) {
	n := signalOf(s)
	if n != syscall.SIGUSR1 && l.result.Stopped == nil {
		l.result.Stopped = s
	}
	l.step(Signalled{n})
}

// receive turns a message into an event.
func (l *launcher) receive(m message) {
	slot := l.nodes[m.node]
	switch r := m.report; {
	case m.err == nil && slot.node == nil:
		// It was released: how its ranks end is nobody's concern.
	case m.err != nil:
		slot.lost = m.err.Error()
		l.drop(slot)
		l.step(Lost{m.node})
	case r.Hello != nil:
		slot.hello = *r.Hello
		l.compareClocks(m.node)
		l.step(Joined{m.node})
	case r.Listening != nil:
		l.masterPort = r.Listening.Port
		l.step(Listening{r.Listening.Gen})
	case r.Up != nil:
		l.step(Up{r.Up.Gen, m.node})
	case r.Exited != nil:
		l.exited(r.Exited)
	case r.Ready != nil:
		l.step(Ready{m.node})
	case r.Paused != nil:
		l.step(Paused{r.Paused.Gen, r.Paused.Rank})
	case r.Stranded != nil:
		l.stranded(r.Stranded)
	case r.Quiet != nil:
		l.step(Quiet{r.Quiet.Gen, m.node, len(r.Quiet.Stuck)})
	case r.Leaving != nil:
		l.step(Drain{m.node})
	case r.Broken != nil:
		slot.lost = r.Broken.Cause
		l.drop(slot)
		l.step(Lost{m.node})
	}
}

// maxSkew is how far a host's clock may be off before the user is told: times
// in logs and the order of failures come from it.
const maxSkew = 2 * time.Second

func (l *launcher) compareClocks(index int) {
	skew := time.Until(time.Unix(0, l.nodes[index].hello.Clock)).Round(100 * time.Millisecond)
	switch {
	case l.nodes[index].hello.Clock == 0:
	case skew > maxSkew:
		l.tell(fmt.Sprintf("the clock of %s is %v ahead of ours: times in logs mislead (hint: run NTP on all hosts)", l.hostOf(index), skew))
	case skew < -maxSkew:
		l.tell(fmt.Sprintf("the clock of %s is %v behind ours: times in logs mislead (hint: run NTP on all hosts)", l.hostOf(index), -skew))
	}
}

// drop ends what is left of a node's agent.
func (l *launcher) drop(slot *nodeSlot) {
	if slot.node != nil {
		slot.node.close()
		slot.node = nil
	}
}

func (l *launcher) exited(e *exitedReport) {
	said := launch.ParseErrorFile(e.ErrorFile)
	event := Exited{Gen: e.Gen, Rank: e.Rank, Exit: e.Exit, Report: said != nil, Crashed: e.Panic != "", Hung: e.Hung != ""}
	if said != nil {
		event.Victim, event.Permanent = said.Victim, said.Permanent
		event.Apart, event.Peer = said.Victim && said.Apart, said.Peer
	} else if l.spec.Command != nil && e.Exit.Signal == 0 {
		event.Victim = launch.BlamesPeer(strings.Join(l.output.tail(e.Rank), "\n"))
	}
	l.endings[place{e.Gen, e.Rank}] = e
	l.step(event)
}

// stranded notes what a rank says that lives on in a broken world.
func (l *launcher) stranded(s *strandedReport) {
	at := place{s.Gen, s.Rank}
	if l.endings[at] == nil {
		said := launch.Failure{Message: s.Cause, Rank: s.Rank, Step: s.Step, Time: time.Now()}
		l.endings[at] = &exitedReport{Gen: s.Gen, Rank: s.Rank, PID: s.PID, Alive: true, ErrorFile: launch.EncodeFailure(said)}
	}
	l.step(Stranded{s.Gen, s.Rank, s.Peer, s.Late, s.Apart})
}

// step asks the control plane and obeys.
func (l *launcher) step(event Event) {
	if l.finished {
		return
	}
	now := time.Since(l.began)
	actions, reason := l.control.Step(now, event)
	l.note(now, event, actions, reason)
	for _, a := range actions {
		l.perform(a)
	}
}

func (l *launcher) openJournal() (err error) {
	if l.spec.LogDir == "" {
		return nil
	}
	if err := os.MkdirAll(l.spec.LogDir, 0o755); err != nil {
		return fmt.Errorf("make log folder: %w", err)
	}
	if l.journal, err = os.Create(filepath.Join(l.spec.LogDir, "control.log")); err != nil {
		return fmt.Errorf("make the control plane's log: %w", err)
	}
	return nil
}

// note writes a decision to control.log, which is for people.
func (l *launcher) note(now time.Duration, event Event, actions []Action, reason string) {
	if l.journal != nil {
		fmt.Fprintf(l.journal, "%10.6f  %v -> %s\n", now.Seconds(), event, describe(actions, reason))
	}
}

// shutdown ends all agents and makes sure that nothing is left.
func (l *launcher) shutdown() {
	l.timer.Stop()
	var wg sync.WaitGroup
	over := command{Over: &overOrder{Code: l.result.ExitCode}}
	if f := l.result.Failure; f != nil {
		over.Over.Cause = fmt.Sprintf("rank %d on %s: %s", f.Rank, f.Host, f.Cause)
	}
	for _, slot := range l.nodes {
		slot.send(over)
		wg.Go(func() { l.drop(slot) })
	}
	wg.Wait()
	l.closing.Wait()
	l.fail(l.sweep())
	l.fail(l.output.close())
	if l.journal != nil {
		l.fail(l.journal.Close())
	}
}

// sweep clears away what agents left here that were lost and not replaced.
func (l *launcher) sweep() error {
	lost := false
	for _, slot := range l.nodes {
		lost = lost || slot.lost != ""
	}
	if !lost {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	_, err := launch.Sweep(ctx, l.tree)
	return err
}

// fail keeps the first error that is not about the ranks.
func (l *launcher) fail(err error) {
	if l.err == nil && err != nil {
		l.err = err
	}
}

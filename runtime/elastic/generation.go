package elastic

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// drainTime bounds the wait for output after everything that we know of has
// died: a process of another user may hold a pipe open.
const drainTime = time.Second

// generation is the ranks of one node in one generation.
type generation struct {
	agent  *agent
	number int
	order  startOrder
	ranks  []*rankProcess
	oom    int // kills by the kernel before it began

	killOnce sync.Once
	hopeless chan struct{} // closed when killed processes had their time to die
	over     chan struct{} // closed when nothing is left
	watchers sync.WaitGroup
}

// rankProcess is one rank.
type rankProcess struct {
	rank  int
	proc  *launch.Process        // nil: it could not be started
	panic atomic.Pointer[string] // first line of a Go program's crash
}

func newGeneration(a *agent, o startOrder) *generation {
	g := &generation{agent: a, number: o.Gen, order: o, hopeless: make(chan struct{}), over: make(chan struct{})}
	g.oom, _ = launch.OutOfMemoryKills()
	return g
}

// start starts all ranks and a goroutine that closes over.
func (g *generation) start() {
	var pids []int
	for local := range g.agent.setup.Ranks {
		r := &rankProcess{rank: g.agent.setup.FirstRank + local}
		err := g.startRank(local, r)
		if err != nil {
			g.reportUnstarted(r, err)
			break // the others would fail the same way
		}
		g.ranks = append(g.ranks, r)
		pids = append(pids, r.proc.PID())
		g.watchers.Go(func() { g.watch(r) })
	}
	g.agent.closeSocket() // rank 0 has its own
	if len(pids) == g.agent.setup.Ranks {
		g.agent.emit(report{Up: &upReport{g.number, pids}})
	}
	go g.finish()
}

// place is what a rank's environment says.
func (g *generation) place(local int) launch.Rank {
	s := g.agent.setup
	p := launch.Rank{
		Rank: s.FirstRank + local, WorldSize: s.WorldSize, LocalRank: local, LocalWorldSize: s.Ranks,
		NodeRank: s.Node, Nodes: s.Nodes, MasterAddr: g.order.MasterAddr, MasterPort: g.order.MasterPort,
		RestartCount: g.order.Restarts, MaxRestarts: s.MaxRestarts, Generation: g.number, RunID: s.RunID,
		ErrorFile: g.agent.errorFile(g.number, s.FirstRank+local), EventsFD: launch.EventsFD,
	}
	if s.WorldSize > 1 {
		p.SecretFD = launch.SecretFD
	}
	if s.Payload != nil {
		p.PayloadFD = launch.PayloadFD
	}
	if p.Rank == 0 && g.agent.socket != nil {
		p.StoreFD = launch.StoreFD
	}
	return p
}

// environment is all variables of a rank.
func (g *generation) environment(p launch.Rank) []string {
	s := g.agent.setup
	own := append(p.Environ(), fmt.Sprintf("%s=%s%d", launch.TreeVariable, s.mark(), g.number))
	if s.Command == nil {
		own = append(own, launch.RoleVariable+"="+launch.RoleRank)
	} else {
		own = append(own, launch.RoleVariable)
	}
	env := launch.Environment(os.Environ(), s.Env, own)
	if _, set := launch.Lookup(env, "OMP_NUM_THREADS"); !set && s.Ranks > 1 {
		env = append(env, "OMP_NUM_THREADS=1") // as torchrun: ranks share the cores
	}
	return env
}

func (g *generation) startRank(local int, r *rankProcess) error {
	place := g.place(local)
	c := launch.Command{Path: g.agent.path, Args: g.agent.args, Env: g.environment(place), Dir: g.agent.setup.Dir,
		Inherit: map[int]*os.File{}, Secrets: map[int][]byte{}}
	if place.SecretFD != 0 {
		c.Secrets[place.SecretFD] = g.order.Secret
	}
	if place.StoreFD != 0 {
		c.Inherit[place.StoreFD] = g.agent.socket
	}
	if place.PayloadFD != 0 {
		// Opened anew, so that each rank reads from the start.
		payload, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", g.agent.payload.Fd()))
		if err != nil {
			return fmt.Errorf("open payload: %w", err)
		}
		defer payload.Close()
		c.Inherit[place.PayloadFD] = payload
	}
	c.Outputs = []launch.Output{
		{FD: 1, MaxLine: maxLine, Emit: g.line(r, "stdout")},
		{FD: 2, MaxLine: maxLine, Emit: g.line(r, "stderr")},
		{FD: launch.EventsFD, MaxLine: maxEvent, Emit: g.events(r)},
	}
	var err error
	r.proc, err = launch.Start(c)
	return err
}

// line passes a rank's output on, and looks out for a Go program's crash.
func (g *generation) line(r *rankProcess, stream string) launch.LineFunc {
	return func(line []byte, whole bool) {
		if stream == "stderr" && crash.Match(line) {
			text := string(line)
			r.panic.CompareAndSwap(nil, &text)
		}
		g.agent.emit(report{Line: &lineReport{g.number, r.rank, stream, line, !whole}})
	}
}

// crash is how Go's runtime begins its report: of a panic, of its own failure,
// or of a signal.
var crash = regexp.MustCompile(`^(panic|fatal error|SIG[A-Z0-9]+): `)

// events passes whole events on; what no newline ends is half an event.
func (g *generation) events(r *rankProcess) launch.LineFunc {
	skip := false
	return func(line []byte, whole bool) {
		if whole && !skip {
			g.agent.emit(report{Line: &lineReport{g.number, r.rank, eventStream, line, false}})
		}
		skip = !whole // the rest of an overlong one
	}
}

// watch reports a rank's end.
func (g *generation) watch(r *rankProcess) {
	select {
	case <-r.proc.Ended():
	case <-g.hopeless:
		return
	}
	exit := r.proc.Exit()
	e := &exitedReport{Gen: g.number, Rank: r.rank, PID: r.proc.PID(), Exit: exit}
	text, err := launch.ReadErrorFile(g.agent.errorFile(g.number, r.rank))
	if err != nil {
		text = []byte(err.Error())
	}
	e.ErrorFile = text
	if exit.Code == launch.ExitUsage && text == nil {
		// Go's exit code of a panic is 2 too; its first line tells them apart.
		waitUpTo(r.proc.Drained(), drainTime)
	}
	if line := r.panic.Load(); line != nil {
		e.Panic = *line
	}
	if exit.Signal == syscall.SIGKILL {
		kills, known := launch.OutOfMemoryKills()
		e.OutOfMemory = known && kills > g.oom
	}
	g.agent.emit(report{Exited: e})
}

// reportUnstarted reports a rank without a process, as a shell would.
func (g *generation) reportUnstarted(r *rankProcess, err error) {
	text := launch.EncodeFailure(launch.Failure{Message: err.Error(), Rank: r.rank, Permanent: true, Time: time.Now()})
	g.agent.emit(report{Exited: &exitedReport{Gen: g.number, Rank: r.rank, Exit: launch.Exit{Code: 127}, ErrorFile: text}})
}

// signal sends sig to each rank.
func (g *generation) signal(sig syscall.Signal) {
	for _, r := range g.ranks {
		_ = r.proc.Signal(sig) // it fails for what is being killed anyway
	}
}

// kill kills all ranks at once and gives them the agent's patience to be gone.
func (g *generation) kill() {
	g.killOnce.Do(func() {
		for _, r := range g.ranks {
			r.proc.Kill()
		}
		patience := time.AfterFunc(g.agent.patience, func() { close(g.hopeless) })
		go func() {
			<-g.over
			patience.Stop()
		}()
	})
}

// finish waits for the ranks, clears away what they left, and reports it.
func (g *generation) finish() {
	defer close(g.over)
	g.watchers.Wait()
	stuck, err := g.agent.sweep(g.agent.patience)
	if err != nil {
		g.agent.emit(report{Broken: &brokenReport{err.Error()}})
	}
	for _, r := range g.ranks {
		select {
		case <-r.proc.Ended():
		default:
			if !slices.Contains(stuck, r.proc.PID()) {
				stuck = append(stuck, r.proc.PID())
			}
		}
		if !waitUpTo(r.proc.Drained(), drainTime) {
			r.proc.GiveUpOutput()
			<-r.proc.Drained()
		}
		os.Remove(g.agent.errorFile(g.number, r.rank))
	}
	g.agent.emit(report{Quiet: &quietReport{g.number, stuck}})
}

// waitUpTo reports whether done was closed within d.
func waitUpTo(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

package elastic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// killTime is how long killed processes may take to be gone. One that sleeps in
// the kernel may not die before its device answers.
const killTime = 10 * time.Second

// agent runs the ranks of one node. Its methods are called one at a time.
type agent struct {
	setup    setup
	patience time.Duration // killTime
	emit     func(report)  // called from several goroutines; must not block for long
	path     string        // what ranks execute
	args     []string
	dir      string   // temporary, for error files
	payload  *os.File // nil: none
	guard    *guard
	release  func() // ends the adoption of orphans

	socket  *os.File // of the coming generation's store, on rank 0's node
	crew    *crew    // nil: none yet
	started int      // processes so far
	over    *overOrder
}

// newAgent makes ready to run ranks and says hello.
func newAgent(s setup, guardTree string, emit func(report)) (*agent, error) {
	a := &agent{setup: s, patience: killTime, emit: emit, release: func() {}}
	if err := a.prepare(guardTree); err != nil {
		a.close()
		return nil, err
	}
	emit(report{Hello: a.hello()})
	return a, nil
}

func (a *agent) prepare(guardTree string) (err error) {
	if err := a.checkDir(); err != nil {
		return err
	}
	if a.path, a.args, err = program(a.setup); err != nil {
		return err
	}
	if a.dir, err = os.MkdirTemp("", "ddp-"); err != nil {
		return fmt.Errorf("make a folder for error files: %w", err)
	}
	// Before any rank: nothing may exist that nobody clears away.
	if a.guard, err = startGuard(guardOrder{Tree: guardTree, Dir: a.dir}); err != nil {
		return err
	}
	if a.release, err = launch.AdoptOrphans(); err != nil {
		a.release = func() {}
		return err
	}
	if a.setup.Payload != nil {
		if a.payload, err = launch.PayloadFile(a.setup.Payload); err != nil {
			return err
		}
	}
	if a.setup.Sweep {
		_, err = a.sweep(a.setup.mark(), a.patience)
	}
	return err
}

// checkDir refuses a working directory that this host does not have.
func (a *agent) checkDir() error {
	dir := string(a.setup.Dir)
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	if err != nil {
		return fmt.Errorf("enter the launcher's working directory: %w (hint: every host needs the job's files under the same path, from a shared file system or copied there)", err)
	}
	return nil
}

// program finds what ranks execute.
func program(s setup) (path string, args []string, err error) {
	if s.Command == nil {
		return "/proc/self/exe", []string{os.Args[0]}, nil
	}
	path = s.Command[0]
	if !strings.Contains(path, "/") {
		if path, err = exec.LookPath(path); err != nil && !errors.Is(err, exec.ErrDot) {
			return "", nil, fmt.Errorf("find the command: %w", err)
		}
	}
	return path, s.Command, nil
}

func (a *agent) hello() *hello {
	h := &hello{Version: protocolVersion, Clock: time.Now().UnixNano()}
	h.Host, _ = os.Hostname()
	h.LauncherAddr, h.OwnAddr = a.setup.route.launcher, a.setup.route.own
	// SSH_CONNECTION is: client address, client port, server address, server port.
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 && h.OwnAddr == "" {
		h.LauncherAddr, h.OwnAddr = f[0], f[2]
	}
	return h
}

// do carries out a command. An error is the agent's end.
func (a *agent) do(c command) error {
	switch {
	case c.Listen != nil:
		return a.listen(*c.Listen)
	case c.Start != nil:
		return a.start(*c.Start)
	case c.Signal != nil:
		if a.runs(c.Signal.Gen) {
			a.crew.signal(syscall.Signal(c.Signal.Signal))
		}
	case c.Pause != nil:
		if a.runs(c.Pause.Gen) {
			a.crew.tell(launch.Order{Pause: true})
		}
	case c.Replace != nil:
		if a.runs(c.Replace.Gen) {
			a.crew.replace(*c.Replace)
		}
	case c.Kill != nil:
		a.kill(c.Kill.Gen)
	case c.Ping != nil:
		a.emit(report{Pong: &pongReport{}})
	case c.Over != nil:
		a.over = c.Over
	default:
		return errors.New("unknown command from the launcher")
	}
	return nil
}

func (a *agent) runs(gen int) bool { return a.crew != nil && a.crew.number() == gen }

// kill ends all ranks. That none are left is said again where it was said before.
func (a *agent) kill(gen int) {
	if a.crew == nil || a.crew.isOver() {
		a.emit(report{Quiet: &quietReport{Gen: gen}})
		return
	}
	a.crew.kill(gen)
}

// listen opens the socket of the coming generation's store.
func (a *agent) listen(o listenOrder) error {
	a.closeSocket()
	socket, port, err := launch.StoreSocket(a.setup.Local && a.setup.Command == nil, o.Listen, o.Port)
	if err != nil {
		return err
	}
	a.socket = socket
	a.emit(report{Listening: &listeningReport{o.Gen, port}})
	return nil
}

func (a *agent) closeSocket() {
	if a.socket != nil {
		a.socket.Close()
		a.socket = nil
	}
}

// start begins a generation with the ranks that live, where it is to keep them,
// and new ones.
func (a *agent) start(o startOrder) error {
	if a.crew != nil {
		if o.Keep && a.crew.join(o) {
			return nil
		}
		<-a.crew.cleared
	}
	a.crew = newCrew(a, o)
	a.crew.start()
	return nil
}

// sweep clears away what carries a mark, or was orphaned to us.
func (a *agent) sweep(mark string, patience time.Duration) (stuck []int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return launch.Sweep(ctx, mark)
}

// place is where a rank stands in a generation.
func (a *agent) place(o startOrder, local int) *launch.Place {
	return &launch.Place{Rank: o.FirstRank + local, WorldSize: o.WorldSize, LocalRank: local, LocalWorldSize: a.setup.Ranks,
		NodeRank: o.NodeRank, Nodes: o.Nodes, MasterAddr: o.MasterAddr, MasterPort: o.MasterPort,
		Generation: o.Gen, Restarts: o.Restarts, Secret: o.Secret}
}

// environmentPlace is what a rank's environment says of it.
func (a *agent) environmentPlace(o startOrder, local int) launch.Rank {
	p := launch.Rank{MaxRestarts: a.setup.MaxRestarts, RunID: a.setup.RunID, Role: a.setup.Role, EventsFD: launch.EventsFD, FlightFD: launch.FlightFD}.In(*a.place(o, local), nil)
	if a.setup.Payload != nil {
		p.PayloadFD = launch.PayloadFD
	}
	switch {
	case a.setup.Live:
		p.ChannelFD = launch.ChannelFD // secret and socket come through it
		return p
	case p.Rank == 0 && a.socket != nil:
		p.StoreFD = launch.StoreFD
	}
	if p.WorldSize > 1 {
		p.SecretFD = launch.SecretFD
	}
	return p
}

// environment is all variables of a rank.
func (a *agent) environment(p launch.Rank, mark string) []string {
	s := a.setup
	own := append(p.Environ(), launch.TreeVariable+"="+mark)
	if s.Command == nil {
		own = append(own, launch.RoleVariable+"="+launch.RoleRank)
	} else {
		own = append(own, launch.RoleVariable)
	}
	env := launch.Environment(os.Environ(), s.environ(), own)
	if _, set := launch.Lookup(env, "OMP_NUM_THREADS"); !set && s.Ranks > 1 {
		env = append(env, "OMP_NUM_THREADS=1") // as torchrun: ranks share the cores
	}
	if _, set := launch.Lookup(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"); !set && s.Command != nil {
		env = append(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1") // as torchrun: a lost peer ends the rank
	}
	return env
}

// close kills what still runs and returns when nothing of it is left.
func (a *agent) close() {
	if a.crew != nil {
		a.crew.kill(a.crew.number())
		<-a.crew.cleared
	}
	a.closeSocket()
	if a.payload != nil {
		a.payload.Close()
	}
	a.release()
	if a.guard != nil {
		a.guard.dismiss()
	}
	if a.dir != "" {
		os.RemoveAll(a.dir)
	}
}

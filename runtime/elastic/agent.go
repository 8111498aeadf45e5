package elastic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

	socket *os.File // of the coming generation's store, on rank 0's node
	gen    *generation
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
		_, err = a.sweep(a.patience)
	}
	return err
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
	h := &hello{Version: protocolVersion}
	h.Host, _ = os.Hostname()
	// SSH_CONNECTION is: client address, client port, server address, server port.
	if f := strings.Fields(os.Getenv("SSH_CONNECTION")); len(f) == 4 {
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
			a.gen.signal(syscall.Signal(c.Signal.Signal))
		}
	case c.Kill != nil:
		if a.runs(c.Kill.Gen) {
			a.gen.kill()
		}
	default:
		return errors.New("unknown command from the launcher")
	}
	return nil
}

func (a *agent) runs(gen int) bool { return a.gen != nil && a.gen.number == gen }

// listen opens the socket of the coming generation's store.
func (a *agent) listen(o listenOrder) error {
	a.closeSocket()
	socket, port, err := launch.StoreSocket(a.setup.Local && a.setup.Command == nil, o.Listen)
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

// start begins a generation; the one before is over.
func (a *agent) start(o startOrder) error {
	if a.gen != nil {
		<-a.gen.over
	}
	a.gen = newGeneration(a, o)
	a.gen.start()
	return nil
}

// sweep clears away what carries this node's mark, or was orphaned to us.
func (a *agent) sweep(patience time.Duration) (stuck []int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return launch.Sweep(ctx, a.setup.mark())
}

// close kills what still runs and returns when nothing of it is left.
func (a *agent) close() {
	if a.gen != nil {
		a.gen.kill()
		<-a.gen.over
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

// errorFile is where a rank reports its failure.
func (a *agent) errorFile(gen, rank int) string {
	return filepath.Join(a.dir, fmt.Sprintf("gen-%d-rank-%d.json", gen, rank))
}

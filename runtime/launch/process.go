package launch

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command says what to start.
type Command struct {
	Path string   // of the program
	Args []string // Args[0] is the program's own name
	Env  []string // all of it
	Dir  string   // working directory; "": ours

	// Descriptors of the child by their numbers; 0, 1, 2 default to /dev/null.
	Inherit map[int]*os.File
	Secrets map[int][]byte // pipes that hold these bytes, at most a page each, and then end
	Outputs []Output
	Control bool // stdin is a pipe from Process.Control
	Channel bool // descriptor ChannelFD is the other end of Process.Channel

	// Detached starts the process in a session of its own and lets it live on
	// when we die. Else it gets a process group of its own and dies with us.
	Detached bool
}

// Output is a descriptor of the child whose lines we read. Emit is called by a
// goroutine of its own until the last writer has closed.
type Output struct {
	FD      int
	MaxLine int // bytes; see ReadLines
	Emit    LineFunc
}

// Process is a child that runs or ran. Its methods may be called concurrently.
type Process struct {
	// Control leads to the process's stdin, if Command.Control asked for it. The
	// caller closes it.
	Control *os.File
	// Channel leads to the process's descriptor ChannelFD, if Command.Channel asked
	// for it. The caller closes it.
	Channel *Channel

	pid     int
	pipes   []*os.File // our ends of the outputs
	ended   chan struct{}
	drained chan struct{}

	mu     sync.Mutex
	reaped bool // pid is not ours any more
	exit   Exit
}

// Start starts a process. Whoever starts one must wait for Ended and Drained.
//
// The process is killed when we die, whatever kills us: Pdeathsig, which the
// kernel sends when the creating thread ends, so that the thread is one that
// never does; package syscall's child checks its parent again after asking for
// it. Its whole group is killed when it ends itself, so that only processes
// that left the group can outlive it: see Sweep.
func Start(c Command) (*Process, error) {
	files := newFileTable()
	defer files.close()
	if err := files.build(c); err != nil {
		files.closeEnds()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	pidfd := -1
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files.child, Sys: &syscall.SysProcAttr{PidFD: &pidfd}}
	if c.Detached {
		attr.Sys.Setsid = true
	} else {
		attr.Sys.Setpgid = true
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	pid, err := spawn(c.Path, c.Args, attr)
	if err != nil {
		files.closeEnds()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p := &Process{Control: files.control, Channel: files.channel, pid: pid, pipes: files.outputs, ended: make(chan struct{}), drained: make(chan struct{})}
	go p.wait(pidfd)
	go p.drain(c.Outputs)
	return p, nil
}

// PID is the process's number.
func (p *Process) PID() int { return p.pid }

// Ended is closed when the process has ended and was reaped.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Exit is how the process ended. Call it after Ended is closed.
func (p *Process) Exit() Exit { return p.exit }

// Drained is closed when every output has been read to its end, or was given up.
// A process that outlives this one can hold it open.
func (p *Process) Drained() <-chan struct{} { return p.drained }

// GiveUpOutput stops reading.
func (p *Process) GiveUpOutput() {
	for _, pipe := range p.pipes {
		pipe.Close()
	}
}

// Signal sends sig to the process alone, not to its group. After the process's
// end it does nothing.
func (p *Process) Signal(sig syscall.Signal) error { return p.kill(p.pid, sig) }

// Kill kills the process and its group.
func (p *Process) Kill() { _ = p.kill(-p.pid, syscall.SIGKILL) }

// kill signals while the number is certainly still ours.
func (p *Process) kill(pid int, sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return nil
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", SignalName(sig), pid, err)
	}
	return nil
}

// wait reaps the process once it has ended.
func (p *Process) wait(pidfd int) {
	awaitExit(p.pid, pidfd)
	// The zombie still holds the number, so that no other group can have it.
	p.Kill()
	var status syscall.WaitStatus
	p.mu.Lock()
	for {
		_, err := syscall.Wait4(p.pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	p.reaped = true
	p.mu.Unlock()
	forgetChild(p.pid)
	if status.Signaled() {
		p.exit = Exit{Signal: status.Signal(), Core: status.CoreDump()}
	} else {
		p.exit = Exit{Code: status.ExitStatus()}
	}
	close(p.ended)
}

// awaitExit returns when the process has ended, without reaping it: through its
// pidfd, or, before Linux 5.4, by a thread that waits.
func awaitExit(pid, pidfd int) {
	if pidfd >= 0 && unix.SetNonblock(pidfd, true) == nil {
		file := os.NewFile(uintptr(pidfd), "pidfd")
		defer file.Close()
		if conn, err := file.SyscallConn(); err == nil && conn.Read(hasEnded(pid)) == nil {
			return
		}
	}
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// hasEnded asks, for the poller, whether there is something to reap.
func hasEnded(pid int) func(uintptr) bool {
	return func(uintptr) bool {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
		return err == nil && info.Signo != 0 || errors.Is(err, unix.ECHILD)
	}
}

// drain reads all outputs.
func (p *Process) drain(outputs []Output) {
	var wg sync.WaitGroup
	for i, out := range outputs {
		wg.Go(func() {
			defer p.pipes[i].Close()
			// A read error ends the stream as its end does; the process's exit tells more.
			_ = ReadLines(p.pipes[i], out.MaxLine, out.Emit)
		})
	}
	wg.Wait()
	close(p.drained)
}

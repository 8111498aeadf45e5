package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ddp/runtime/launch"
	"ddp/runtime/ssh"
)

// A lease is asked for leaseParts times; the agent itself ends a part earlier, so
// that its ranks are gone before others take their place.
const (
	leaseParts = 5
	joinParts  = leaseParts * 12
)

// remote is an agent at the other end of a line: a process of ours, such as ssh,
// or a guest's connection.
type remote struct {
	index    int
	line     line
	output   func(*lineReport)
	inbox    *queue[message]
	commands *queue[command]
	stop     chan struct{} // closed by close
	wg       sync.WaitGroup

	lease   time.Duration
	heard   chan struct{} // holds a token when the agent has said something
	greeted bool          // the reader's: hello has come
	broken  atomic.Value  // string: why the agent says, or we say, that it is of no use
}

// line is how commands get to an agent, and how the line to it ends.
type line struct {
	commands io.WriteCloser
	ended    <-chan struct{} // nothing will come any more
	cut      func()          // ends it
	why      func() string   // it ended; called after ended is closed
}

func newRemote(s setup, output func(*lineReport), inbox *queue[message]) *remote {
	r := &remote{index: s.Node, output: output, inbox: inbox, commands: newQueue[command](),
		stop: make(chan struct{}), lease: s.Lease, heard: make(chan struct{}, 1)}
	r.send(command{Setup: &s})
	return r
}

// openProcess starts an agent of another node on this machine.
func openProcess(s setup, output func(*lineReport), inbox *queue[message]) (node, error) {
	c := launch.Command{Path: "/proc/self/exe", Args: []string{os.Args[0]},
		Env: launch.Environment(os.Environ(), []string{launch.RoleVariable + "=" + launch.RoleAgent})}
	r, stderr, started := newRemote(s, output, inbox), &tail{}, make(chan struct{})
	c.Control = true
	c.Outputs = []launch.Output{
		{FD: 1, MaxLine: maxReport, Emit: func(line []byte, _ bool) { <-started; r.receive(line) }},
		{FD: 2, MaxLine: 4 << 10, Emit: func(line []byte, _ bool) { stderr.add(string(line)) }},
	}
	proc, err := launch.Start(c)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	r.line = line{commands: proc.Control, ended: ended, cut: proc.Kill, why: func() string {
		why := proc.Exit().String()
		if lines := stderr.lines(); len(lines) > 0 {
			why += ": " + strings.Join(lines[max(0, len(lines)-3):], "; ")
		}
		return why
	}}
	close(started)
	r.wg.Go(func() {
		defer close(ended)
		<-proc.Ended()
		if !waitUpTo(proc.Drained(), drainTime) {
			proc.GiveUpOutput()
			<-proc.Drained()
		}
	})
	r.begin()
	return r, nil
}

// openSSH starts an agent on another host.
func openSSH(host string, s setup, note func(string), output func(*lineReport), inbox *queue[message]) node {
	r, far := newRemote(s, output, inbox), ssh.NewSession(host)
	far.Role, far.MaxLine, far.Emit, far.Note = launch.RoleAgent, maxReport, r.receive, note
	r.line = line{commands: far, ended: far.Ended(), cut: far.Cut, why: far.Why}
	r.wg.Go(far.Run)
	r.begin()
	return r
}

func (r *remote) begin() {
	r.wg.Go(r.write)
	r.wg.Go(r.keepLease)
	r.wg.Go(r.watch)
}

func (r *remote) send(c command) { r.commands.put(c) }

// write writes commands until the agent or the launcher ends it.
func (r *remote) write() {
	defer r.line.commands.Close()
	enc := json.NewEncoder(r.line.commands)
	for stopped := false; !stopped; {
		select {
		case <-r.stop:
			stopped = true // after what was still to be said
		case <-r.line.ended:
			return
		case <-r.commands.ready:
		}
		for _, c := range r.commands.take() {
			if enc.Encode(c) != nil {
				return // watch tells why
			}
		}
	}
}

// receive takes a line from the agent. Before hello a shell's greeting may come.
func (r *remote) receive(text []byte) {
	if r.broken.Load() != nil || !r.greeted && !bytes.HasPrefix(text, []byte("{")) {
		return
	}
	select {
	case r.heard <- struct{}{}:
	default:
	}
	said, err := parseReport(text)
	switch {
	case err != nil:
		r.fail(err.Error())
	case said.Broken != nil:
		r.fail(said.Broken.Cause)
	case said.Pong != nil:
	case said.Line != nil:
		r.output(said.Line)
	case said.Hello != nil && said.Hello.Version != protocolVersion:
		r.fail(fmt.Sprintf("its program speaks version %d, ours version %d: install the same program on all hosts", said.Hello.Version, protocolVersion))
	default:
		r.greeted = r.greeted || said.Hello != nil
		r.inbox.put(message{node: r.index, report: said})
	}
}

// keepLease asks the agent for signs of life, and gives up one that sends none:
// a line can be dead without having ended.
func (r *remote) keepLease() {
	tick := time.NewTicker(r.lease / leaseParts)
	defer tick.Stop()
	silent := -joinParts // until the first word, as long as it may take to get there
	for {
		select {
		case <-r.heard:
			silent = 0
		case <-tick.C:
			if silent++; silent > leaseParts {
				r.fail(fmt.Sprintf("no sign of life for %v: its machine or the network is down", r.lease))
				return
			}
			r.send(command{Ping: &struct{}{}})
		case <-r.line.ended:
			return
		case <-r.stop:
			return
		}
	}
}

// fail gives the agent up; its end follows.
func (r *remote) fail(why string) {
	r.broken.CompareAndSwap(nil, why)
	r.line.cut()
}

// watch reports the agent's end, after all that it had to say.
func (r *remote) watch() {
	<-r.line.ended
	why, ok := r.broken.Load().(string)
	if !ok {
		why = r.line.why()
	}
	r.inbox.put(message{node: r.index, err: errors.New(why)})
}

// close lets the agent read the end of its commands, upon which it clears away
// everything and ends.
func (r *remote) close() {
	close(r.stop)
	if !waitUpTo(r.line.ended, 2*killTime) {
		r.line.cut()
	}
	r.wg.Wait()
}

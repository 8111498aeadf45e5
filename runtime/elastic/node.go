package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ddp/runtime/launch"
)

// node is the launcher's end of one agent. When the agent is gone, or said that
// it is broken, its last message is one with an error.
type node interface {
	// send passes a command on. It does not block.
	send(command)
	// close ends the agent and returns when nothing of it is left.
	close()
}

// message is what comes from an agent.
type message struct {
	node   int
	report report
	err    error // the agent's end, last of its messages
}

// inProcess is the agent that the launcher itself is.
type inProcess struct {
	index  int
	agent  *agent
	inbox  *queue[message]
	broken bool
}

// openInProcess starts the agent of the launcher's own node. line gets output,
// inbox everything else. The guard watches over all of the job on this machine.
func openInProcess(s setup, line func(*lineReport), inbox *queue[message]) (node, error) {
	a, err := newAgent(s, s.Tree, func(r report) {
		if r.Line != nil {
			line(r.Line)
			return
		}
		inbox.put(message{node: s.Node, report: r})
	})
	if err != nil {
		return nil, err
	}
	return &inProcess{index: s.Node, agent: a, inbox: inbox}, nil
}

func (n *inProcess) send(c command) {
	if n.broken {
		return
	}
	if err := n.agent.do(c); err != nil {
		n.broken = true
		n.inbox.put(message{node: n.index, err: err})
	}
}

func (n *inProcess) close() { n.agent.close() }

// process is an agent at the other end of two pipes.
type process struct {
	index    int
	proc     *launch.Process
	line     func(*lineReport)
	inbox    *queue[message]
	commands *queue[command]
	started  chan struct{} // closed when proc is set
	stop     chan struct{} // closed by close
	wg       sync.WaitGroup

	lease   time.Duration
	heard   chan struct{} // holds a token when the agent has said something
	greeted bool          // the reader's: hello has come
	stderr  *tail         // the stderr reader's, until drained
	broken  atomic.Value  // string: why the agent says, or we say, that it is of no use
}

// openProcess starts an agent through its transport.
func openProcess(n Node, program string, s setup, line func(*lineReport), inbox *queue[message]) (node, error) {
	c, err := transport(n, program)
	if err != nil {
		return nil, err
	}
	p := &process{index: s.Node, line: line, inbox: inbox, commands: newQueue[command](),
		started: make(chan struct{}), stop: make(chan struct{}), stderr: &tail{}, lease: s.Lease, heard: make(chan struct{}, 1)}
	c.Control = true
	c.Outputs = []launch.Output{
		{FD: 1, MaxLine: maxReport, Emit: p.receive},
		{FD: 2, MaxLine: 4 << 10, Emit: func(line []byte, _ bool) { p.stderr.add(string(line)) }},
	}
	p.send(command{Setup: &s})
	if p.proc, err = launch.Start(c); err != nil {
		return nil, err
	}
	close(p.started)
	p.wg.Go(p.write)
	p.wg.Go(p.keepLease)
	p.wg.Go(p.watch)
	return p, nil
}

func (p *process) send(c command) { p.commands.put(c) }

// write writes commands until the agent or the launcher ends it.
func (p *process) write() {
	defer p.proc.Control.Close()
	enc := json.NewEncoder(p.proc.Control)
	for {
		select {
		case <-p.stop:
			return
		case <-p.proc.Ended():
			return
		case <-p.commands.ready:
		}
		for _, c := range p.commands.take() {
			if enc.Encode(c) != nil {
				return // watch tells why
			}
		}
	}
}

// receive takes a line of the agent's stdout. Before hello a shell's greeting
// may come.
func (p *process) receive(line []byte, _ bool) {
	if p.broken.Load() != nil || !p.greeted && !bytes.HasPrefix(line, []byte("{")) {
		return
	}
	select {
	case p.heard <- struct{}{}:
	default:
	}
	r, err := parseReport(line)
	switch {
	case err != nil:
		p.fail(err.Error())
	case r.Broken != nil:
		p.fail(r.Broken.Cause)
	case r.Pong != nil:
	case r.Line != nil:
		p.line(r.Line)
	case r.Hello != nil && r.Hello.Version != protocolVersion:
		p.fail(fmt.Sprintf("its program speaks version %d, ours version %d: install the same program on all hosts", r.Hello.Version, protocolVersion))
	default:
		p.greeted = p.greeted || r.Hello != nil
		p.inbox.put(message{node: p.index, report: r})
	}
}

// keepLease asks the agent for signs of life, and gives up one that sends none:
// a connection can be dead without having ended.
func (p *process) keepLease() {
	tick := time.NewTicker(p.lease / leaseParts)
	defer tick.Stop()
	silent := -joinParts // until the first word, as long as it may take to get there
	for {
		select {
		case <-p.heard:
			silent = 0
		case <-tick.C:
			if silent++; silent > leaseParts {
				p.fail(fmt.Sprintf("no sign of life for %v: its machine or the network is down", p.lease))
				return
			}
			p.send(command{Ping: &struct{}{}})
		case <-p.proc.Ended():
			return
		case <-p.stop:
			return
		}
	}
}

// A lease is asked for leaseParts times; the agent itself ends a part earlier, so
// that its ranks are gone before others take their place.
const (
	leaseParts = 5
	joinParts  = leaseParts * 12
)

// fail gives the agent up; its end follows.
func (p *process) fail(why string) {
	p.broken.CompareAndSwap(nil, why)
	<-p.started
	p.proc.Kill()
}

// watch reports the agent's end, after all that it had to say.
func (p *process) watch() {
	<-p.proc.Ended()
	if !waitUpTo(p.proc.Drained(), drainTime) {
		p.proc.GiveUpOutput()
		<-p.proc.Drained()
	}
	why := p.proc.Exit().String()
	if said, ok := p.broken.Load().(string); ok {
		why = said
	} else if lines := p.stderr.lines(); len(lines) > 0 {
		why += ": " + strings.Join(lines[max(0, len(lines)-3):], "; ")
	}
	p.inbox.put(message{node: p.index, err: errors.New(why)})
}

// close lets the agent read the end of its stdin, upon which it clears away
// everything and ends.
func (p *process) close() {
	close(p.stop)
	if !waitUpTo(p.proc.Ended(), 2*killTime) {
		p.proc.Kill()
	}
	p.wg.Wait()
}

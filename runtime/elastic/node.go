package elastic

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

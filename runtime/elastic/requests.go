package elastic

import "fmt"

// Request is what a person asks of a running job: exactly one field is set.
type Request struct {
	Drain  string `json:"drain,omitempty"`  // take out the node of this name or number
	Add    *Node  `json:"add,omitempty"`    // take a node in, reached as the first ones are
	Status bool   `json:"status,omitempty"` // tell how the job stands

	Answer func(Status, error) `json:"-"` // called once, from Run
}

// Status is how a job stands.
type Status struct {
	Generation int          `json:"generation"`
	WorldSize  int          `json:"world_size"`
	Restarts   int          `json:"restarts"`
	Phase      string       `json:"phase"`
	Nodes      []NodeStatus `json:"nodes"`
}

// NodeStatus is how one node stands.
type NodeStatus struct {
	Node      int    `json:"node"`
	Host      string `json:"host"`
	Ranks     int    `json:"ranks"`
	State     string `json:"state"`
	FirstRank int    `json:"first_rank"` // -1: it does not belong to the generation
	Lost      string `json:"lost,omitempty"`
}

var phaseNames = map[phase]string{joining: "waiting for nodes", listening: "regrouping", running: "running", suspecting: "looking for a failure's cause",
	pausing: "changing members", stopping: "stopping", killing: "clearing away", over: "over"}

var whereNames = map[where]string{away: "away", coming: "coming", there: "spare", warming: "getting ready", warm: "ready", enlisted: "member"}

// request serves one Request.
func (l *launcher) request(r Request) {
	var err error
	switch {
	case r.Drain != "":
		err = l.drain(r.Drain)
	case r.Add != nil:
		err = l.add(*r.Add)
	}
	r.Answer(l.status(), err)
}

// drain takes out the node of a name.
func (l *launcher) drain(name string) error {
	for i := range l.nodes {
		if c := l.control.nodes[i]; (name == fmt.Sprint(i) || name == l.hostOf(i) || name == l.spec.Nodes[i].Host) && !c.leaving {
			l.step(Drain{i})
			if !l.control.nodes[i].leaving {
				return fmt.Errorf("node %s cannot be drained now: %s", name, l.control.reason)
			}
			return nil
		}
	}
	return fmt.Errorf("no node is called %s (`ddp status` lists them)", name)
}

// add takes a further node in.
func (l *launcher) add(n Node) error {
	if n.Ranks < 1 {
		return fmt.Errorf("node %s has %d ranks, want at least 1", n.Host, n.Ranks)
	}
	for i, o := range l.spec.Nodes {
		if o.Host == n.Host && !l.control.nodes[i].leaving {
			return fmt.Errorf("node %s is there already", n.Host)
		}
	}
	l.spec.Nodes = append(l.spec.Nodes, n)
	l.nodes = append(l.nodes, &nodeSlot{})
	l.step(Offered{Ranks: n.Ranks})
	return nil
}

// welcome takes a guest in.
func (l *launcher) welcome(g Guest) {
	index := len(l.nodes)
	l.spec.Nodes = append(l.spec.Nodes, Node{Host: g.Host, Ranks: g.Ranks})
	slot := &nodeSlot{tries: 1}
	l.nodes = append(l.nodes, slot)
	l.step(Offered{Ranks: g.Ranks, Guest: true})
	if l.finished {
		g.Close()
		return
	}
	slot.node = openGuest(g, l.setup(index), l.output.line, l.inbox)
}

func (l *launcher) status() Status {
	s := Status{Generation: l.result.Generations, Restarts: l.control.Restarts(), Phase: phaseNames[l.control.phase]}
	for i, n := range l.spec.Nodes {
		c := l.control.nodes[i]
		state := NodeStatus{Node: i, Host: l.hostOf(i), Ranks: n.Ranks, State: whereNames[c.at], FirstRank: -1}
		switch {
		case c.at == enlisted:
			state.FirstRank = l.firstRank(i)
			s.WorldSize += n.Ranks
		case c.leaving:
			state.State = "drained"
		default:
			state.Lost = l.nodes[i].lost
		}
		s.Nodes = append(s.Nodes, state)
	}
	return s
}

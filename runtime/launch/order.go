package launch

import "os"

// Order is what an agent tells a rank over its Channel: where it stands in a
// generation, or one of the requests below, alone.
type Order struct {
	Place *Place `json:"place,omitempty"` // with the store's socket beside it for rank 0 of several

	Pause bool `json:"pause,omitempty"` // end the step, then report Paused and wait for a Place
	Leave bool `json:"leave,omitempty"` // end: the world goes on without this rank
	Dump  bool `json:"dump,omitempty"`  // write what you are doing to stderr
}

// Place is a rank's place in one generation. A rank that lives through several
// gets one for each.
type Place struct {
	Rank           int    `json:"rank"`
	WorldSize      int    `json:"world_size"`
	LocalRank      int    `json:"local_rank"`
	LocalWorldSize int    `json:"local_world_size"`
	NodeRank       int    `json:"node_rank"`
	Nodes          int    `json:"nodes"`
	MasterAddr     string `json:"master_addr,omitempty"`
	MasterPort     int    `json:"master_port,omitempty"`
	Generation     int    `json:"generation"`
	Restarts       int    `json:"restarts"`
	Secret         []byte `json:"secret,omitempty"`
}

// Status is what a rank tells its agent: exactly one field is set.
type Status struct {
	Ready  bool    `json:"ready,omitempty"`  // it has done what needs no peers, and waits for a Place
	Beat   *Beat   `json:"beat,omitempty"`   // it lives
	Paused *Paused `json:"paused,omitempty"` // it has ended a step as asked
	Broken *Broken `json:"broken,omitempty"` // its world is broken and it waits for a new one
}

// Beat is sent at a steady pace.
type Beat struct {
	Progress uint64 `json:"progress"` // grows with all that the rank completes
	Idle     bool   `json:"idle"`     // it waits for orders, and completes nothing
}

// Paused says up to where a rank came.
type Paused struct {
	Generation int `json:"generation"`
	Step       int `json:"step"`
}

// Broken says why a rank's world cannot go on, though the rank can.
type Broken struct {
	Generation int    `json:"generation"`
	Step       int    `json:"step"`            // completed
	Peer       int    `json:"peer"`            // that it blames; -1: none
	Late       bool   `json:"late"`            // the peer did not come, rather than break off
	Apart      bool   `json:"apart,omitempty"` // the peer cannot be reached from here, though it may live
	Cause      string `json:"cause"`           // one line
}

// In returns r as it stands in the generation of p. store is the socket that
// came with p, nil for none; Connect closes it.
func (r Rank) In(p Place, store *os.File) Rank {
	r.Rank, r.WorldSize, r.LocalRank, r.LocalWorldSize = p.Rank, p.WorldSize, p.LocalRank, p.LocalWorldSize
	r.NodeRank, r.Nodes, r.MasterAddr, r.MasterPort = p.NodeRank, p.Nodes, p.MasterAddr, p.MasterPort
	r.Generation, r.RestartCount = p.Generation, p.Restarts
	r.given = &given{p.Secret, store}
	return r
}

// given is what an Order brought that else is inherited.
type given struct {
	secret []byte
	store  *os.File
}

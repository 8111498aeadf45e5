package elastic

import (
	"encoding/json"
	"fmt"
	"time"

	"ddp/runtime/launch"
)

// The launcher and an agent exchange one JSON object a line: commands to the
// agent's stdin, reports from its stdout. When stdin ends, the agent kills its
// ranks and ends. The first command is Setup, or Guard for a process that is to
// be nothing but a guard; the first report is Hello.

// protocolVersion is refused when it differs.
const protocolVersion = 3

// maxReport bounds a line from an agent: an event of maxEvent bytes in base64.
const (
	maxLine   = 64 << 10 // bytes of a rank's output that make one line
	maxEvent  = 1 << 20  // bytes of a rank's event
	maxReport = 2 << 20
)

// command is one line to an agent; exactly one field is set.
type command struct {
	Setup  *setup         `json:"setup,omitempty"`
	Guard  *guardOrder    `json:"guard,omitempty"`
	Listen *listenOrder   `json:"listen,omitempty"`
	Start  *startOrder    `json:"start,omitempty"`
	Signal *signalOrder   `json:"signal,omitempty"`
	Kill   *generationRef `json:"kill,omitempty"`

	Pause   *generationRef `json:"pause,omitempty"`
	Replace *replaceOrder  `json:"replace,omitempty"`
	Ping    *struct{}      `json:"ping,omitempty"` // to be answered with a pong
	Over    *overOrder     `json:"over,omitempty"` // last of all: the job has ended
}

// setup is all that an agent must know of the job.
type setup struct {
	Version     int      `json:"version"`
	RunID       string   `json:"run_id"`
	Tree        string   `json:"tree"` // marks the job's processes: launch.TreeVariable
	Node        int      `json:"node"`
	Ranks       int      `json:"ranks"`
	MaxRestarts int      `json:"max_restarts"`
	Command     []string `json:"command,omitempty"` // nil: this program as a rank
	Role        string   `json:"role,omitempty"`
	Env         [][]byte `json:"env,omitempty"` // bytes, as names and values need not be UTF-8
	Dir         []byte   `json:"dir,omitempty"`
	Payload     []byte   `json:"payload,omitempty"`
	Local       bool     `json:"local"`           // all nodes are one machine
	Sweep       bool     `json:"sweep,omitempty"` // an agent of this node was lost: clear away what it left

	Live        bool          `json:"live"`         // ranks go from one generation to the next
	HangTimeout time.Duration `json:"hang_timeout"` // for a rank that completes nothing; 0: none
	Grace       time.Duration `json:"grace"`        // between a wish to leave and leaving anyway
	Lease       time.Duration `json:"lease"`        // without a word from the launcher the agent ends; 0: none

	route route
}

// mark is what the processes of this node carry, without the generation.
func (s setup) mark() string { return fmt.Sprintf("%s%d:", s.Tree, s.Node) }

// exactly makes texts what JSON takes byte for byte.
func exactly(texts []string) [][]byte {
	out := make([][]byte, len(texts))
	for i, t := range texts {
		out[i] = []byte(t)
	}
	return out
}

// environ is what Env adds to the environment.
func (s setup) environ() []string {
	out := make([]string, len(s.Env))
	for i, e := range s.Env {
		out[i] = string(e)
	}
	return out
}

type guardOrder struct {
	Tree string `json:"tree"`
	Dir  string `json:"dir"` // temporary folder to remove
}

type generationRef struct {
	Gen int `json:"gen"`
}

type listenOrder struct {
	Gen    int  `json:"gen"`
	Listen bool `json:"listen"`         // accept clients already: the rank is known to serve
	Port   int  `json:"port,omitempty"` // 0: a free one
}

type startOrder struct {
	Gen        int    `json:"gen"`
	Keep       bool   `json:"keep,omitempty"` // ranks that live take part
	Warm       bool   `json:"warm,omitempty"` // only start the ranks: their place comes later
	FirstRank  int    `json:"first_rank"`
	WorldSize  int    `json:"world_size"`
	NodeRank   int    `json:"node_rank"`
	Nodes      int    `json:"nodes"`
	Restarts   int    `json:"restarts"`
	Secret     []byte `json:"secret"`
	MasterAddr string `json:"master_addr,omitempty"`
	MasterPort int    `json:"master_port,omitempty"`
}

// overOrder tells how the job ended.
type overOrder struct {
	Code  int    `json:"code"`
	Cause string `json:"cause,omitempty"` // of a failure
}

type replaceOrder struct {
	Gen  int `json:"gen"`
	Rank int `json:"rank"`
	For  int `json:"for"` // the rank that waited in vain
}

type signalOrder struct {
	Gen    int `json:"gen"`
	Signal int `json:"signal"`
}

// report is one line from an agent; exactly one field is set.
type report struct {
	Hello     *hello           `json:"hello,omitempty"`
	Listening *listeningReport `json:"listening,omitempty"`
	Up        *upReport        `json:"up,omitempty"`
	Line      *lineReport      `json:"line,omitempty"`
	Exited    *exitedReport    `json:"exited,omitempty"`
	Quiet     *quietReport     `json:"quiet,omitempty"`
	Broken    *brokenReport    `json:"broken,omitempty"`
	Ready     *readyReport     `json:"ready,omitempty"`
	Paused    *pausedReport    `json:"paused,omitempty"`
	Stranded  *strandedReport  `json:"stranded,omitempty"`
	Pong      *pongReport      `json:"pong,omitempty"`
	Leaving   *leavingReport   `json:"leaving,omitempty"`
}

type hello struct {
	Version int    `json:"version"`
	Host    string `json:"host"`
	Clock   int64  `json:"clock"` // Unix time in nanoseconds
	// As ssh's server sees the connection; "" without ssh.
	LauncherAddr string `json:"launcher_addr,omitempty"`
	OwnAddr      string `json:"own_addr,omitempty"`
}

type listeningReport struct {
	Gen  int `json:"gen"`
	Port int `json:"port"`
}

type upReport struct {
	Gen  int   `json:"gen"`
	PIDs []int `json:"pids"`
}

// lineReport is a line of a rank's stdout, stderr or events.
type lineReport struct {
	Gen    int    `json:"gen"`
	Rank   int    `json:"rank"`
	Stream string `json:"stream"`
	Text   []byte `json:"text"`
	Part   bool   `json:"part,omitempty"` // no newline followed
}

const eventStream = "events"

type exitedReport struct {
	Gen           int         `json:"gen"`
	Rank          int         `json:"rank"`
	PID           int         `json:"pid"`
	Exit          launch.Exit `json:"exit"`
	ErrorFile     []byte      `json:"error_file,omitempty"`     // its text
	Panic         string      `json:"panic,omitempty"`          // first line of a Go program's crash
	OutOfMemory   bool        `json:"out_of_memory,omitempty"`  // the kernel killed some process of the node
	Hung          string      `json:"hung,omitempty"`           // why it was killed
	Flight        []byte      `json:"flight,omitempty"`         // its last collectives, a line each
	LastOperation string      `json:"last_operation,omitempty"` // the last one, and where it stood
	Alive         bool        `json:"-"`                        // it is no end: the rank is stranded
}

// readyReport says that all ranks of the node wait for their places.
type readyReport struct{}

type pongReport struct{}

// leavingReport says that the node's machine is about to end.
type leavingReport struct{}

type pausedReport struct {
	Gen  int `json:"gen"`
	Rank int `json:"rank"`
}

// strandedReport is what a rank says that lives on in a broken world.
type strandedReport struct {
	Gen   int    `json:"gen"`
	Rank  int    `json:"rank"`
	PID   int    `json:"pid"`
	Step  int    `json:"step"`
	Peer  int    `json:"peer"` // that it blames; -1: none
	Late  bool   `json:"late,omitempty"`
	Apart bool   `json:"apart,omitempty"`
	Cause string `json:"cause"`
}

type quietReport struct {
	Gen   int   `json:"gen"`
	Stuck []int `json:"stuck,omitempty"` // processes that would not die
}

// brokenReport is an agent's last word.
type brokenReport struct {
	Cause string `json:"cause"`
}

// parseReport reads a line from an agent.
func parseReport(line []byte) (report, error) {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("report of an agent: %w", err)
	}
	return r, nil
}

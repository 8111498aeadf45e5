package spmd

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is returned by operations on a World that its own rank has closed.
var ErrClosed = errors.New("the world is closed")

// ErrUnreachable is in a PeerError when no packet gets to the peer's host or back,
// though the peer may well live.
var ErrUnreachable = errors.New("its host does not answer (is the network cut, or a firewall between?)")

// TimeoutError says that an operation waited for a peer longer than
// Config.Timeout allows.
type TimeoutError struct {
	Rank, Peer int
	Op         string
	Bytes      int64 // still missing from (or not taken by) the peer
	Sending    bool  // the peer did not take bytes, rather than not send them
	After      time.Duration
}

func (e *TimeoutError) Error() string {
	if e.Sending {
		return fmt.Sprintf("rank %d: %s: %d bytes for rank %d were not taken within %v", e.Rank, e.Op, e.Bytes, e.Peer, e.After)
	}
	return fmt.Sprintf("rank %d: %s: %d bytes from rank %d did not arrive within %v", e.Rank, e.Op, e.Bytes, e.Peer, e.After)
}

// PeerError says that a peer is gone: its process died, its connection closed,
// it left the World, or it gave up. Peer is the rank to blame, which may have
// been reported by another one.
type PeerError struct {
	Rank, Peer int
	Op         string
	Err        error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("rank %d: %s: rank %d: %v", e.Rank, e.Op, e.Peer, e.Err)
}

// Unwrap returns what happened to the peer.
func (e *PeerError) Unwrap() error { return e.Err }

// MismatchError says that two ranks met in different operations. Mine and
// Theirs describe them, such as "all-reduce 7 of 100 float32 (sum)".
type MismatchError struct {
	Rank, Peer   int
	Mine, Theirs string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("rank %d: %s met rank %d's %s: every rank must call the same collectives, in the same order, with the same sizes", e.Rank, e.Mine, e.Peer, e.Theirs)
}

var errLeft = errors.New("it has left the world")

// deadError is how a peer is known to be gone.
type deadError string

func (e deadError) Error() string { return string(e) }

// gaveUpError is what a peer wrote when it broke the World.
type gaveUpError string

func (e gaveUpError) Error() string { return "it gave up: " + string(e) }

// reportedError is another peer's account of the culprit's failure.
type reportedError struct {
	by   int
	text string
}

func (e reportedError) Error() string {
	return fmt.Sprintf("reported by rank %d: %s", e.by, e.text)
}

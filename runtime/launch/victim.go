package launch

import (
	"errors"
	"strings"

	"ddp/runtime/store"
	"ddp/spmd"
)

// BrokenBy tells whether err means that another rank is gone or hangs, in which
// case a rank of live recovery goes on in another world, and which rank that is.
// late: it did not come in time, rather than break off.
func BrokenBy(err error) (peer int, late, broken bool) {
	var timeout *spmd.TimeoutError
	peer, broken = victimOf(err)
	return peer, broken && errors.As(err, &timeout), broken
}

// Apart tells whether err means that the peer it blames cannot be reached, though
// that may live.
func Apart(err error) bool { return errors.Is(err, spmd.ErrUnreachable) }

// victimOf tells whether err means that another rank is gone or hangs, and which.
// Of several joined errors the first counts: the rest followed from it.
func victimOf(err error) (peer int, victim bool) {
	for err != nil {
		switch e := err.(type) {
		case *spmd.PeerError:
			return e.Peer, true
		case *spmd.TimeoutError:
			return e.Peer, true
		case interface{ Unwrap() []error }:
			err = e.Unwrap()[0]
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		default:
			return 0, err == store.ErrLost // rank 0 serves the store
		}
	}
	return 0, false
}

// peerPhrases are what PyTorch, its back ends and Go's and Python's sockets say
// when the other side of a connection has gone.
var peerPhrases = []string{
	"Connection closed by peer", "Connection reset by peer", "connection reset by peer", "Broken pipe", "broken pipe",
	"Connection refused", "Connection was likely closed", "Did the remote server shutdown or crash", // torch's store
	"caused pair closure",                                // gloo
	"remote process exited or there was a network error", // NCCL
	"Watchdog caught collective operation timeout", "Socket Timeout", "Some NCCL operations have failed or timed out",
}

// BlamesPeer tells whether what a foreign program said last reads as if another
// rank's end had caused its own. It is a guess: one who blames others wrongly is
// blamed all the same when nobody else fails.
func BlamesPeer(text string) bool {
	for _, phrase := range peerPhrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

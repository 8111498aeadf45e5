package launch

import (
	"errors"

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

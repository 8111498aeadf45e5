package launch

import (
	"ddp/runtime/store"
	"ddp/spmd"
)

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

package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// NeedFiles returns an error when processes with this one's limits cannot open n
// files at once. The soft limit does not count: Go programs raise it themselves.
func NeedFiles(n int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max >= uint64(n) {
		return nil // what cannot be asked may well suffice
	}
	return fmt.Errorf("up to %d files may be open at once, and the limit here is %d (hint: raise it with `ulimit -n %d`, or LimitNOFILE= of the service; or give the host fewer ranks)", n, limit.Max, n)
}

package launch

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this process, in place of init, the parent of all its
// descendants that lose theirs (a subreaper, prctl(2)), and reaps those that
// end, until the returned function is called. Those that don't end are for Sweep
// to find.
func AdoptOrphans() (stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range ended {
			reapAdopted()
		}
	}()
	return func() {
		signal.Stop(ended)
		close(ended)
		<-done
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) // it was possible to set
	}, nil
}

// reapAdopted reaps every adopted process that has ended.
func reapAdopted() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			reap(pid)
		}
	}
}

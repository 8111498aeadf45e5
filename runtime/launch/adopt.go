package launch

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// AdoptOrphans makes this process the subreaper of its descendants and reaps
// those that come to it and end, until the returned function is called. Those
// that don't end are left to Sweep.
func AdoptOrphans() (stop func(), err error) {
	if err := BeSubreaper(); err != nil {
		return nil, err
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

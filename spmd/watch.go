package spmd

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher notices the death of processes on this host.
type watcher struct {
	wg    sync.WaitGroup
	files []*os.File
}

// add calls gone once, from another goroutine, when the process ends. Kernels
// without pidfds (before 5.10) cannot watch; deaths then show as time-outs.
func (w *watcher) add(pid int, gone func()) error {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("watch process %d: %w", pid, err)
	}
	w.files = append(w.files, f)
	w.wg.Go(func() {
		ended := false
		// Waits in the runtime's poller, without a thread; Close ends it.
		_ = raw.Read(func(fd uintptr) bool {
			ended = hasEnded(int(fd))
			return ended
		})
		if ended {
			gone()
		}
	})
	return nil
}

func hasEnded(pidfd int) bool {
	polls := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(polls, 0)
	return err == nil && n == 1
}

func (w *watcher) close() {
	for _, f := range w.files {
		_ = f.Close()
	}
	w.wg.Wait()
}

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sweep kills what is left of process trees: every process whose environment
// holds TreeVariable with a value that begins with tree, and every orphan that
// this process adopted. An orphan is a child that Start did not make and that
// has left our process group, so that other children of the program are safe.
// It returns when none is left, or, when ctx ends, with those that would not
// die. The caller itself is never killed.
func Sweep(ctx context.Context, tree string) (stuck []int, err error) {
	for {
		found, err := strays(tree)
		if err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		if len(found) == 0 {
			return nil, nil
		}
		for _, s := range found {
			s.kill()
		}
		for _, s := range found {
			if !s.awaitEnd(ctx) {
				stuck = append(stuck, s.pid)
			}
			s.close()
		}
		if len(stuck) > 0 {
			return stuck, nil
		}
		// What they started meanwhile is found in the next round.
	}
}

// stray is a process to be killed, held by its pidfd.
type stray struct{ pid, pidfd int }

func (s stray) kill()  { _ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0) }
func (s stray) close() { unix.Close(s.pidfd) }

// awaitEnd returns true when the process has ended; it is reaped if it is ours.
func (s stray) awaitEnd(ctx context.Context) bool {
	if !awaitReadable(ctx, s.pidfd) {
		return false
	}
	reap(s.pid)
	return true
}

// awaitReadable polls fd until it is readable or ctx ends.
func awaitReadable(ctx context.Context, fd int) bool {
	wake, wakeUp, err := os.Pipe()
	if err != nil {
		return false
	}
	defer wake.Close()
	defer wakeUp.Close()
	stop := context.AfterFunc(ctx, func() { wakeUp.Write([]byte{0}) })
	defer stop()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && fds[0].Revents != 0
	}
}

// strays scans /proc. A dead process that nobody has reaped counts if it is for
// us to reap.
func strays(tree string) ([]stray, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []stray
	self := os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || !isStray(pid, tree) {
			continue
		}
		pidfd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has just ended
		}
		// Looked at again, now that the number cannot pass to another process.
		if !isStray(pid, tree) {
			unix.Close(pidfd)
			continue
		}
		found = append(found, stray{pid, pidfd})
	}
	return found, nil
}

func isStray(pid int, tree string) bool { return carries(pid, tree) || isAdopted(pid) }

// carries reads the environment with which a process was started.
func carries(pid int, tree string) bool {
	if tree == "" {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // it has ended, or belongs to someone else
	}
	mark := []byte(TreeVariable + "=" + tree)
	return bytes.HasPrefix(env, mark) || bytes.Contains(env, append([]byte{0}, mark...))
}

// isAdopted tells whether pid is an orphan whose parent we became.
func isAdopted(pid int) bool {
	children.Lock()
	ours := children.pids[pid]
	children.Unlock()
	if ours {
		return false
	}
	parent, group, ok := parentAndGroup(pid)
	return ok && parent == os.Getpid() && group != unix.Getpgrp()
}

// parentAndGroup reads fields 4 and 5 of /proc/PID/stat (proc(5)).
func parentAndGroup(pid int) (parent, group int, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// Field 2, the name in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 3 {
		return 0, 0, false
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	return parent, group, err1 == nil && err2 == nil
}

// reap takes the exit status of an adopted process, if it has ended.
func reap(pid int) {
	if isAdopted(pid) {
		for {
			if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}
}

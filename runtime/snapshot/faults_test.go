package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const fullHint = "the disk is full: free some space"

// fault fails one disk operation, once.
type fault struct {
	mu     sync.Mutex
	n, at  int
	err    error
	op     string // the one that failed, "" before
	synced bool   // the folder of all snapshots was, before the fault
}

func (f *fault) disk(dir string) disk {
	return disk{before: func(op, path string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.n++; f.n == f.at {
			f.op = op + " " + path
			return f.err
		}
		f.synced = f.synced || f.op == "" && op == "sync" && path == dir
		return nil
	}}
}

// TestEveryOperationFails lets each disk operation fail once: all ranks hear of
// it, the older snapshot stays, nothing is left over, and the next one works.
func TestEveryOperationFails(t *testing.T) {
	for _, size := range []int{1, 2} {
		for _, before := range []int{1, 2} {
			for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EIO} {
				t.Run(fmt.Sprintf("%d ranks, step 2 after %d, %v", size, before, errno), func(t *testing.T) {
					t.Parallel()
					for at := 1; failsAt(t, size, before, at, errno); at++ {
						if at > 200 {
							t.Fatal("the writer never ends")
						}
					}
				})
			}
		}
	}
}

// failsAt is false when the writer ended before that operation.
func failsAt(t *testing.T, size, before, at int, errno syscall.Errno) bool {
	dir := t.TempDir()
	older, newer := content(before, 0), content(2, 1)
	mustWrite(t, dir, 1, older)
	f := &fault{at: at, err: errno}
	rs, err := open(size, dir, Keep{Newest: 1}, f.disk(dir))
	if err != nil {
		t.Fatal(err)
	}
	written, errs := rs.write(newer)
	for rank, err := range errs {
		text := fmt.Sprint(err)
		if f.op != "" && (!strings.Contains(text, errno.Error()) || strings.Contains(text, fullHint) != (errno == unix.ENOSPC)) {
			t.Errorf("rank %d says %v", rank, err)
		}
		if (err == nil) != (f.op == "") || (written[rank] != nil) != f.synced {
			t.Errorf("rank %d: written %v, error %v", rank, written[rank], err)
		}
	}
	switch {
	case f.op == "":
		newestHolds(t, dir, newer)
		has(t, dir, 2)
		return false
	case f.synced: // what failed was the removal of the older one
		newestHolds(t, dir, newer)
	default:
		newestHolds(t, dir, older)
		has(t, dir, before)
	}
	if _, errs := rs.write(content(3, 1)); errs[0] != nil || errs[size-1] != nil {
		t.Errorf("the next snapshot: %v", errs)
	}
	newestHolds(t, dir, content(3, 1))
	has(t, dir, 3)
	if t.Failed() {
		t.Fatalf("failed: operation %d, %s", at, f.op)
	}
	return true
}

// TestRemovalFailsToo lets a snapshot fail and leave its folder: the same step
// can be written again by the same writer.
func TestRemovalFailsToo(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0))
	failing := true
	rs, err := open(1, dir, Keep{Newest: 9}, disk{before: func(op, _ string) error {
		if failing && (op == "write" || op == "remove") {
			return unix.EIO
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := rs.write(content(2, 0)); errs[0] == nil {
		t.Error("no error")
	}
	newestHolds(t, dir, content(1, 0))
	failing = false
	if _, errs := rs.write(content(2, 1)); errs[0] != nil {
		t.Error(errs[0])
	}
	newestHolds(t, dir, content(2, 1))
	has(t, dir, 1, 2)
}

const mountedVariable = "SNAPSHOT_TEST_MAY_MOUNT"

// TestFullDisk fills a real file system. Without the right to mount one, the
// test runs again in namespaces of its own, where it has it.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k")
	if err != nil && os.Getenv(mountedVariable) == "" {
		inNamespaces(t, err)
		return
	}
	if err != nil {
		t.Fatalf("mount in a namespace: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	mustWrite(t, dir, 1, content(1, 0))
	rs, err := open(2, dir, Keep{Newest: 9}, disk{})
	if err != nil {
		t.Fatal(err)
	}
	large := content(2, 0)
	large.Tensors["more"] = []Tensor{{"x", []int{40000}, make([]float32, 40000)}}
	written, errs := rs.write(large)
	for rank, err := range errs {
		if err == nil || !strings.Contains(err.Error(), fullHint) || written[rank] != nil {
			t.Errorf("rank %d: written %v, error %v", rank, written[rank], err)
		}
	}
	newestHolds(t, dir, content(1, 0))
	has(t, dir, 1)
	if _, errs := rs.write(content(2, 0)); errs[0] != nil || errs[1] != nil {
		t.Errorf("a small snapshot in what is left: %v", errs)
	}
	newestHolds(t, dir, content(2, 0))
}

func inNamespaces(t *testing.T, why error) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), mountedVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	if err := cmd.Start(); err != nil {
		t.Skipf("a file system can be mounted neither here (%v) nor in a namespace (%v)", why, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("in a namespace: %v", err)
	}
}

package launch

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSweepFindsItsMarkOnly(t *testing.T) {
	tree := "sweep-" + strconv.Itoa(os.Getpid()) + ":"
	sleep := func(mark string) *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), TreeVariable+"="+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine, other, longer := sleep(tree+"1:0"), sleep("x"+tree+"1:0"), sleep(tree+"11:0")
	if stuck, err := Sweep(t.Context(), tree+"1:"); err != nil || len(stuck) > 0 {
		t.Errorf("sweep: %v, %v", stuck, err)
	}
	mine.Wait()
	for name, cmd := range map[string]*exec.Cmd{"another job's": other, "another node's": longer} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s process is gone: %v", name, err)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// TestOrphansAreReapedAndSwept has a child leave one orphan that ends and one
// that does not; neither carries a mark.
func TestOrphansAreReapedAndSwept(t *testing.T) {
	release, err := AdoptOrphans()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	bystander := exec.Command("sleep", "1000") // a child of the program's own
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	p := startHelper(t, "orphans", nil)
	p.line(t)
	<-p.Ended()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if stuck, err := Sweep(ctx, "no such mark"); err != nil || len(stuck) > 0 {
		t.Errorf("sweep: %v, %v", stuck, err)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program's own child was swept: %v", err)
	}
	bystander.Process.Kill()
	bystander.Wait()
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != unix.ECHILD {
		t.Errorf("children are left: %v", err)
	}
}

func TestSweepGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	read, write, err := os.Pipe() // never readable
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if awaitReadable(ctx, int(read.Fd())) {
		t.Error("nothing was there to read")
	}
}

func TestParentAndGroup(t *testing.T) {
	parent, group, ok := parentAndGroup(os.Getpid())
	if !ok || parent != os.Getppid() || group != syscall.Getpgrp() {
		t.Errorf("got %d, %d, %v; want %d, %d", parent, group, ok, os.Getppid(), syscall.Getpgrp())
	}
	// A name with spaces and parentheses must not confuse it.
	cmd := exec.Command("bash", "-c", `exec -a x sh -c 'echo "a) b (c" > /proc/$$/comm; echo up; read line'`)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 10))
	if parent, _, ok := parentAndGroup(cmd.Process.Pid); !ok || parent != os.Getpid() {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		t.Errorf("parent %d, %v of %s", parent, ok, strings.TrimSpace(string(text)))
	}
	in.Close()
	cmd.Wait()
}

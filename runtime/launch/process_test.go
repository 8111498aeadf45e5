package launch

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestExits(t *testing.T) {
	for _, c := range []struct {
		what   string
		want   Exit
		text   string
		status int
	}{
		{"exit:0", Exit{}, "exit code 0", 0},
		{"exit:7", Exit{Code: 7}, "exit code 7", 7},
		{"die", Exit{Signal: syscall.SIGSEGV}, "killed by SIGSEGV", 139},
	} {
		p := startHelper(t, c.what, nil)
		<-p.Ended()
		if got := p.Exit(); got != c.want || got.String() != c.text || got.Status() != c.status {
			t.Errorf("%s: %v (status %d), want %v (%d)", c.what, got, got.Status(), c.text, c.status)
		}
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("signal after the end: %v", err)
		}
	}
}

func TestStartOfNothing(t *testing.T) {
	_, err := Start(Command{Path: "/no/such/program", Args: []string{"x"}, Control: true, Secrets: map[int][]byte{4: nil}})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("start: %v", err)
	}
	if _, err := Start(Command{Path: "/bin/true", Args: []string{"true"}, Secrets: map[int][]byte{4: make([]byte, 1<<20)}}); err == nil {
		t.Error("a secret that no pipe holds was accepted")
	}
}

func TestControlAndSecret(t *testing.T) {
	p := startHelper(t, "echo", func(c *Command) {
		c.Control = true
		c.Secrets = map[int][]byte{4: []byte("from the pipe")}
	})
	p.Control.WriteString("from stdin\n")
	if a, b := p.line(t), p.line(t); a != "from stdin" || b != "from the pipe" {
		t.Errorf("child read %q, %q", a, b)
	}
	p.Control.Close()
}

// TestGroupDiesWithItsLeader has the leader end by itself: only then does the
// output end, since the other process holds it open.
func TestGroupDiesWithItsLeader(t *testing.T) {
	p := startHelper(t, "family", nil)
	<-p.Ended()
	<-p.Drained()
}

// TestChildrenOutliveTheThreadThatAskedForThem ends the thread of the goroutine
// that calls Start; Pdeathsig must not take the child with it.
func TestChildrenOutliveTheThreadThatAskedForThem(t *testing.T) {
	var p started
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		p = startHelper(t, "wait", nil)
		p.line(t)
	})
	wg.Wait()
	for range 10 { // threads that end after it
		wg.Go(runtime.LockOSThread)
	}
	wg.Wait()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-p.Ended()
	if got := p.Exit().Signal; got != syscall.SIGTERM {
		t.Errorf("the child ended by %v, want our SIGTERM", got)
	}
}

// TestChildDiesWithItsParent kills a process that used Start.
func TestChildDiesWithItsParent(t *testing.T) {
	p := startHelper(t, "parent", nil)
	word, number, _ := strings.Cut(p.line(t), " ")
	pid, err := strconv.Atoi(number)
	if word != "child" || err != nil {
		t.Fatalf("parent said %s %s", word, number)
	}
	if got := p.line(t); got != "up" {
		t.Errorf("child said %q", got)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)
}

// TestWithoutPidfd waits as on kernels before 5.4.
func TestWithoutPidfd(t *testing.T) {
	p := startHelper(t, "wait", nil)
	p.line(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		awaitExit(p.PID(), -1)
	}()
	p.Kill()
	<-done
}

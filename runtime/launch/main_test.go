package launch

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const helperVariable = "DDP_TEST_HELPER"

func TestMain(m *testing.M) {
	if what := os.Getenv(helperVariable); what != "" {
		os.Exit(helper(what))
	}
	if _, launched, _ := FromEnv(); launched {
		fmt.Fprintln(os.Stderr, "run these tests without RANK in the environment")
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("ddp/runtime/launch.spawnLoop"))
}

// helper is a child of a test.
func helper(what string) int {
	name, argument, _ := strings.Cut(what, ":")
	switch name {
	case "exit":
		var code int
		fmt.Sscan(argument, &code)
		return code
	case "die":
		return runSh("ulimit -c 0; kill -SEGV $$")
	case "wait":
		fmt.Println("up")
		select {}
	case "echo": // stdin, and descriptor 4
		in := bufio.NewReader(os.Stdin)
		line, _ := in.ReadString('\n')
		text, _ := bufio.NewReader(os.NewFile(4, "4")).ReadString(0)
		fmt.Print(line, text)
		return 0
	case "family": // a child in our group, which outlives us
		exec.Command("sleep", "1000").Start()
		fmt.Println("up")
		return 0
	case "orphans": // children in a session of their own that lose us
		exec.Command("setsid", "sleep", "1000").Start()
		exec.Command("setsid", "true").Start()
		fmt.Println("up")
		return 0
	case "listen": // on the port that is kept for us
		l, err := net.Listen("tcp", argument)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer l.Close()
		fmt.Println("listening")
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		fmt.Fprintln(c, "hello")
		c.Close()
		return 0
	case "parent": // starts a child through Start and waits to be killed
		child := Command{Path: "/proc/self/exe", Args: os.Args[:1], Env: Environment(os.Environ(), []string{helperVariable + "=wait"}),
			Outputs: []Output{{FD: 1, MaxLine: 100, Emit: func(line []byte, _ bool) { fmt.Printf("%s\n", line) }}}}
		p, err := Start(child)
		if err != nil {
			return 1
		}
		fmt.Println("child", p.PID())
		select {}
	}
	return 99
}

// runSh replaces this process by a shell.
func runSh(script string) int {
	if err := syscall.Exec("/bin/sh", []string{"sh", "-c", script}, os.Environ()); err != nil {
		return 98
	}
	return 0
}

// started is a child whose lines a test reads.
type started struct {
	*Process
	lines chan string
}

// startHelper starts the test binary as helper.
func startHelper(t *testing.T, what string, change func(*Command)) started {
	t.Helper()
	s := started{lines: make(chan string, 1000)}
	c := Command{Path: "/proc/self/exe", Args: os.Args[:1],
		Env:     Environment(os.Environ(), []string{helperVariable + "=" + what, "GORACE=atexit_sleep_ms=0"}),
		Outputs: []Output{{FD: 1, MaxLine: 1000, Emit: func(line []byte, _ bool) { s.lines <- string(line) }}}}
	if change != nil {
		change(&c)
	}
	var err error
	if s.Process, err = Start(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		<-s.Ended()
		<-s.Drained()
	})
	return s
}

// line returns the child's next line.
func (s started) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-s.lines:
		return line
	case <-s.Drained():
		select {
		case line := <-s.lines:
			return line
		default:
		}
	case <-time.After(20 * time.Second):
	}
	t.Fatal("the child said nothing")
	return ""
}

// awaitGone waits until a process that is not our child has ended.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
	if n != 1 {
		t.Errorf("process %d lives on: %v", pid, err)
	}
}

package elastic

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ddp/runtime/launch"
)

// parentOf reads a process's parent.
func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, after, _ := strings.Cut(string(text), "PPid:\t")
	parent, _ := strconv.Atoi(after[:strings.IndexByte(after, '\n')])
	return parent
}

func TestTwoNodesTwoRanks(t *testing.T) {
	j := newJob(t, "*.0=connected *.1=connected *.2=exit:0", 2, 2)
	j.spec.MaxRestarts = 2
	res := j.run(func() {
		for gen := range 2 {
			parents := map[int]bool{}
			var victim int
			for _, e := range j.await(4) {
				parents[parentOf(t, e.PID)] = true
				if e.Rank == 3-gen {
					victim = e.PID
				}
			}
			if !parents[os.Getpid()] || len(parents) != 2 {
				t.Errorf("the ranks' parents are %v, want us (%d) and an agent", parents, os.Getpid())
			}
			kill(t, victim, syscall.SIGKILL)
		}
	})
	if res.ExitCode != 0 || res.Restarts != 2 || len(j.fails) != 2 || j.fails[0].Rank != 3 || j.fails[1].Rank != 2 {
		t.Errorf("result %+v, failures %+v", res, j.fails)
	}
}

// TestAgentIsKilled also checks that a stray of the lost node goes.
func TestAgentIsKilled(t *testing.T) {
	j := newJob(t, "3.0=stray *.0=wait *.1=graceful:0", 2, 2)
	j.spec.MaxRestarts = 1
	ch := make(chan os.Signal, 1)
	j.spec.Signals = ch
	var agent int
	res := j.run(func() {
		for _, e := range j.await(4) {
			if e.Rank == 3 {
				agent = parentOf(t, e.PID)
			}
		}
		if agent == os.Getpid() {
			t.Fatal("rank 3 has no agent of its own")
		}
		kill(t, agent, syscall.SIGKILL)
		for _, e := range j.await(4) {
			if e.Gen != 1 {
				t.Errorf("event %+v, want generation 1", e)
			}
		}
		ch <- syscall.SIGTERM
	})
	f := res.Failure
	if res.ExitCode != 143 || res.Restarts != 1 || f == nil || f.Rank != 2 || !strings.Contains(f.Cause, "agent of node 1 was lost: killed by SIGKILL") {
		t.Errorf("result %+v, failure %+v", res, f)
	}
}

// TestLostAgentAtTheEnd leaves no time for the lost agent's guard.
func TestLostAgentAtTheEnd(t *testing.T) {
	j := newJob(t, "*.*=stray", 1, 2)
	res := j.run(func() {
		for _, e := range j.await(3) {
			if e.Rank == 1 {
				kill(t, parentOf(t, e.PID), syscall.SIGKILL)
			}
		}
	})
	if res.ExitCode != launch.ExitGaveUp || res.Failure == nil || res.Failure.Rank != 1 {
		t.Errorf("result %+v, failure %+v", res, res.Failure)
	}
	if left := childrenOf(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
}

func TestSignalsReachOtherNodes(t *testing.T) {
	j := newJob(t, "*.*=graceful:0", 1, 1, 1)
	ch := make(chan os.Signal, 1)
	j.spec.Signals = ch
	res := j.run(func() {
		j.await(3)
		ch <- syscall.SIGTERM
	})
	if res.ExitCode != 143 || len(j.lines["2.stdout"]) != 1 {
		t.Errorf("result %+v, rank 2 said %q", res, j.lines["2.stdout"])
	}
}

// startLauncher starts a launcher in a process of its own and returns once its
// ranks are up.
func startLauncher(t *testing.T, j *job, ranks int) (*exec.Cmd, []event) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"RunID": j.spec.RunID, "Nodes": j.spec.Nodes, "LogDir": j.spec.LogDir, "MaxRestarts": j.spec.MaxRestarts})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), launcherVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var events []event
	for lines := bufio.NewScanner(out); len(events) < ranks && lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Errorf("launcher says %q", lines.Text())
		}
		events = append(events, e)
	}
	if len(events) < ranks {
		t.Fatalf("%d of %d ranks are up", len(events), ranks)
	}
	return cmd, events
}

// awaitAllGone waits for the end of every process that carries the mark.
func awaitAllGone(t *testing.T, mark string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := carriers(t, mark)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			noneLeft(t, mark)
			return
		}
		for _, p := range left {
			fd, err := unix.PidfdOpen(pidIn(p), 0)
			if err != nil {
				continue
			}
			unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(1, int(time.Until(deadline).Milliseconds())))
			unix.Close(fd)
		}
	}
}

// TestLauncherIsKilled kills the launcher of two nodes, with strays on both.
func TestLauncherIsKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	j := newJob(t, "0.*=stray 1.*=stubborn 2.*=stray 3.*=stubborn", 2, 2)
	cmd, _ := startLauncher(t, j, 4)
	if n := len(carriers(t, j.mark)); n < 10 { // launcher, agent, two guards, four ranks, two strays
		t.Errorf("only %d processes run", n)
	}
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
	awaitAllGone(t, j.mark)
	if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*"); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
}

// TestLauncherAndRankAndAgentAreKilled leaves nobody but the guards.
func TestLauncherAndRankAndAgentAreKilled(t *testing.T) {
	j := newJob(t, "*.*=stray", 1, 1)
	cmd, events := startLauncher(t, j, 2)
	var agent int
	for _, e := range events {
		if e.Rank == 1 {
			agent = parentOf(t, e.PID)
		}
	}
	kill(t, cmd.Process.Pid, syscall.SIGSTOP) // so that it sees nothing of what follows
	kill(t, agent, syscall.SIGKILL)
	kill(t, cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
	awaitAllGone(t, j.mark)
}

func TestLauncherProcessPassesTheExitCodeOn(t *testing.T) {
	j := newJob(t, "*.*=graceful:0", 2)
	cmd, _ := startLauncher(t, j, 2)
	kill(t, cmd.Process.Pid, syscall.SIGINT)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	awaitAllGone(t, j.mark)
}

// stubSSH puts an ssh first in the path that runs the command here, after script.
func stubSSH(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\n" + script + `
while [ "$1" != "--" ]; do shift; done
shift
export SSH_CONNECTION="127.0.0.1 1 127.0.0.1 2"
exec sh -c "$*"
`
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestOverSSH runs a node behind a stand-in for ssh that greets first, as a
// shell's start-up file may.
func TestOverSSH(t *testing.T) {
	stubSSH(t, `echo "Welcome to far"; echo; echo "no secrets in: $*" >&2`)
	j := newJob(t, "*.0=connected *.1=environment", 1, 2)
	j.spec.Nodes[1].Host = "far"
	j.spec.MaxRestarts = 1
	j.spec.Env = []string{"ODD=a 'b' \"c\" $HOME `x` \\ é\nnext"}
	res := j.run(func() {
		for _, e := range j.await(3) {
			if e.Rank == 2 {
				kill(t, e.PID, syscall.SIGKILL)
			}
		}
	})
	if res.ExitCode != 0 || res.Failure == nil || res.Failure.Host != "far" || res.Failure.Rank != 2 {
		t.Errorf("result %+v, failure %+v", res, res.Failure)
	}
	if out := strings.Join(j.lines["2.stdout"], "\n"); !strings.Contains(out, j.spec.Env[0]+"\n") {
		t.Errorf("the variable did not arrive byte for byte: %s", out)
	}
}

func TestHostThatCannotBeReached(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"refused":     {"echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255", "exit code 255: ssh: connect to host far port 22: Connection refused"},
		"no program":  {"echo 'env: ddp: No such file' >&2; exit 127", "exit code 127: env: ddp: No such file"},
		"old program": {`echo ddp-program-starts; echo '{"hello":{"version":0}}'; cat >/dev/null; exit 0`, "version 0, ours version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			stubSSH(t, c.script)
			j := newJob(t, "", 1, 1)
			j.spec.Nodes[1].Host = "far"
			j.spec.MaxRestarts = 3
			res := j.run(nil)
			if res.ExitCode != launch.ExitRendezvous || res.Failure == nil || !strings.Contains(res.Failure.Cause, c.want) || res.Failure.Host != "far" {
				t.Errorf("result %+v, failure %+v", res, res.Failure)
			}
		})
	}
}

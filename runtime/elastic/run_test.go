package elastic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

func TestTwoRanksEnd(t *testing.T) {
	j := newJob(t, "", 2)
	if res := j.run(nil); res.ExitCode != launch.ExitOK || res.Restarts != 0 || res.Failure != nil || res.Stopped != nil {
		t.Errorf("result %+v", res)
	}
}

// TestKilledRankIsRestarted kills one of three ranks that have met in the store,
// twice; as a Command rank 0 opens the port itself.
func TestKilledRankIsRestarted(t *testing.T) {
	for name, command := range map[string][]string{"own program": nil, "command": {"/proc/self/exe"}} {
		t.Run(name, func(t *testing.T) { killTwice(t, command) })
	}
}

func killTwice(t *testing.T, command []string) {
	j := newJob(t, "*.0=connected *.1=connected *.2=exit:0", 3)
	j.spec.MaxRestarts, j.spec.Command = 2, command
	recovered := map[int]bool{}
	j.spec.OnRecovery = func(gen int, down func() time.Duration) { recovered[gen] = down() > 0 }
	killed := make([]int, 2)
	res := j.run(func() {
		for gen := range killed {
			for _, e := range j.await(3) {
				if e.Gen != gen {
					t.Errorf("event %+v in generation %d", e, gen)
				}
				if e.Rank == 2-gen {
					killed[gen] = e.PID
				}
			}
			kill(t, killed[gen], syscall.SIGKILL)
		}
	})
	if res.ExitCode != launch.ExitOK || res.Restarts != 2 || !recovered[1] || !recovered[2] || len(j.fails) != 2 {
		t.Errorf("result %+v, recovered %v, failures %+v", res, recovered, j.fails)
	}
	for gen, f := range j.fails {
		if f.Rank != 2-gen || f.Signal != "SIGKILL" || f.Cause != "killed by SIGKILL" || f.PID != killed[gen] || f.ExitCode != 137 || f.Generation != gen {
			t.Errorf("failure %+v", f)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		behaviour    string
		command      bool
		restarts     int
		wantCode     int
		wantRestarts int
		wantCause    string
	}{
		{"1.*=exit:2", false, 5, launch.ExitUsage, 0, "exit code 2"},
		{"1.*=fail:2", false, 5, launch.ExitUsage, 0, "exit code 2: rank 1 had enough"},
		{"0.*=exit:5", false, 5, launch.ExitSnapshot, 0, "exit code 5"},
		{"1.*=exit:9", false, 0, launch.ExitGaveUp, 0, "exit code 9"},
		{"1.*=fail:9", false, 2, launch.ExitGaveUp, 2, "exit code 9: rank 1 had enough"},
		{"1.*=exit:9", true, 1, 9, 1, "exit code 9"},
		{"1.*=panic:tea", false, 1, launch.ExitGaveUp, 1, "exit code 2: panic: out of tea"},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			j := newJob(t, c.behaviour, 2)
			j.spec.MaxRestarts = c.restarts
			if c.command {
				j.spec.Command = []string{"/proc/self/exe"}
			}
			res := j.run(nil)
			if res.ExitCode != c.wantCode || res.Restarts != c.wantRestarts {
				t.Errorf("exit code %d after %d restarts, want %d after %d", res.ExitCode, res.Restarts, c.wantCode, c.wantRestarts)
			}
			if res.Failure == nil || !strings.HasPrefix(res.Failure.Cause, c.wantCause) || len(j.fails) != c.wantRestarts+1 {
				t.Errorf("failure %+v of %d, want %q", res.Failure, len(j.fails), c.wantCause)
			}
		})
	}
}

// TestCauseIsNotTheVictim has rank 1 of three fail; the others lose rank 0's
// store or are torn down.
func TestCauseIsNotTheVictim(t *testing.T) {
	j := newJob(t, "0.*=connected 2.*=connected 1.*=connected", 3)
	res := j.run(func() {
		for _, e := range j.await(3) {
			if e.Rank == 0 {
				kill(t, e.PID, syscall.SIGSEGV) // the victims' error files say that rank 0 is gone
			}
		}
	})
	// A Go program turns the signal into exit code 2, which is no usage error then.
	if f := res.Failure; f == nil || f.Rank != 0 || f.Cause != "exit code 2: SIGSEGV: segmentation violation" || res.ExitCode != launch.ExitGaveUp {
		t.Errorf("result %+v, failure %+v", res, res.Failure)
	}
}

// TestOnlyVictims has a rank end with a report that blames rank 0, which goes on.
func TestOnlyVictims(t *testing.T) {
	j := newJob(t, "0.*=wait 1.*=victim", 2)
	res := j.run(nil)
	f := res.Failure
	if f == nil || f.Rank != 1 || f.Step != 7 || !strings.Contains(f.Cause, "rank 0 is gone") || res.ExitCode != launch.ExitGaveUp {
		t.Errorf("result %+v, failure %+v", res, f)
	}
	if text, err := os.ReadFile(f.ErrorFile); err != nil || launch.ParseErrorFile(text).Peer != 0 || !launch.ParseErrorFile(text).Victim {
		t.Errorf("error file: %s, %v", text, err)
	}
}

// TestCulpritAfterItsVictim has the victim end before the culprit reports.
func TestCulpritAfterItsVictim(t *testing.T) {
	j := newJob(t, "0.*=graceful:1 1.*=victim-then", 2)
	victimGone := make(chan struct{})
	j.spec.OnLine = func(_, rank int, _ string, line []byte) {
		if rank == 1 && string(line) == "victim is going" {
			close(victimGone)
		}
	}
	res := j.run(func() {
		pid := j.await(1)[0].PID
		<-victimGone
		kill(t, pid, syscall.SIGTERM) // it ends with code 1
	})
	if f := res.Failure; f == nil || f.Rank != 0 || f.Cause != "exit code 1" {
		t.Errorf("failure %+v", f)
	}
}

func TestRestartsAreCountedInTheWindow(t *testing.T) {
	j := newJob(t, "*.*=exit:1", 2)
	j.spec.MaxRestarts, j.spec.Window = 3, time.Hour
	res := j.run(nil)
	if res.ExitCode != launch.ExitGaveUp || res.Restarts != 3 || len(j.fails) != 4 {
		t.Errorf("result %+v with %d failures", res, len(j.fails))
	}
	for gen, f := range j.fails {
		if f.Generation != gen {
			t.Errorf("failure %d is of generation %d", gen, f.Generation)
		}
	}
}

func TestStrayProcessesDie(t *testing.T) {
	for _, c := range []struct{ name, behaviour string }{
		{"at a failure", "0.0=stray 1.0=stray *.1=exit:0"},
		{"without environment and parent", "*.*=bare-stray"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, c.behaviour, 2)
			j.spec.MaxRestarts = 1
			res := j.run(func() {
				if strings.Contains(c.behaviour, "0.0=stray") {
					events := j.await(2)
					if n := len(carriers(t, j.mark)); n < 4 {
						t.Errorf("%d processes before the kill, want ranks and strays", n)
					}
					kill(t, events[0].PID, syscall.SIGKILL)
				}
			})
			if res.ExitCode != launch.ExitOK {
				t.Errorf("result %+v", res)
			}
			if left := childrenOf(t, os.Getpid()); len(left) > 0 {
				t.Errorf("children are left: %v", left)
			}
		})
	}
}

// childrenOf lists processes whose parent is pid, dead or alive.
func childrenOf(t *testing.T, pid int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		after := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(after) > 1 && after[1] == fmt.Sprint(pid) {
			found = append(found, string(text))
		}
	}
	return found
}

func TestLogsAreComplete(t *testing.T) {
	j := newJob(t, "0.*=talk 1.*=flood:5000", 2)
	if res := j.run(nil); res.ExitCode != 0 {
		t.Fatalf("result %+v", res)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(j.spec.LogDir, "gen-0", name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got := read("rank-0.out"); got != "first\nno newline at the end" {
		t.Errorf("stdout's log: %q", got)
	}
	if got := j.lines["0.stdout"]; !slices.Equal(got, []string{"first", "no newline at the end"}) {
		t.Errorf("stdout's lines: %q", got)
	}
	if got, want := read("rank-0.err"), strings.Repeat("x", 3<<20)+"\nafter\n"; got != want {
		t.Errorf("stderr's log has %d bytes, want %d", len(got), len(want))
	}
	pieces := j.lines["0.stderr"]
	if n := len(pieces); n != 49 || pieces[48] != "after" || len(pieces[0]) != maxLine {
		t.Errorf("the huge line came in %d pieces", n-1)
	}
	var want strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&want, "rank 1 line %d\n", i)
	}
	if read("rank-1.out") != want.String() || strings.Join(j.lines["1.stdout"], "\n")+"\n" != want.String() {
		t.Error("the flood's log differs")
	}
}

func TestLogsOfAllGenerationsAreKept(t *testing.T) {
	j := newJob(t, "*.*=fail:1", 1)
	j.spec.MaxRestarts = 2
	j.run(nil)
	for gen := range 3 {
		path := fmt.Sprintf("%s/gen-%d/rank-0.error.json", j.spec.LogDir, gen)
		if j.fails[gen].ErrorFile != path || j.fails[gen].Step != 41 {
			t.Errorf("failure %+v", j.fails[gen])
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestPayload(t *testing.T) {
	j := newJob(t, "*.*=payload", 2)
	j.spec.Payload = []byte(strings.Repeat("0123456789", 30_000)) // more than a pipe holds
	j.run(nil)
	for rank := range 2 {
		if got := strings.Join(j.lines[fmt.Sprint(rank, ".stdout")], ""); got != string(j.spec.Payload) {
			t.Errorf("rank %d read %d bytes", rank, len(got))
		}
	}
}

func TestEnvironment(t *testing.T) {
	j := newJob(t, "*.*=environment", 1, 2)
	j.spec.Command = []string{"/proc/self/exe"}
	j.spec.Env = []string{`QUOTES="a' $b`, "RANK=77"}
	j.spec.MaxRestarts = 4
	j.run(nil)
	for rank, want := range [][]string{
		{"RANK=0", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1", "GROUP_RANK=0", "NODE_RANK=0"},
		{"RANK=1", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1", "NODE_RANK=1", "OMP_NUM_THREADS=1"},
		{"RANK=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=1", "NODE_RANK=1", "OMP_NUM_THREADS=1"},
	} {
		got := j.lines[fmt.Sprint(rank, ".stdout")]
		want = append(want, "WORLD_SIZE=3", "GROUP_WORLD_SIZE=2", "ROLE_NAME=default", fmt.Sprint("ROLE_RANK=", rank), "ROLE_WORLD_SIZE=3",
			"MASTER_ADDR=127.0.0.1", "TORCHELASTIC_RESTART_COUNT=0", "TORCHELASTIC_MAX_RESTARTS=4", "TORCHELASTIC_RUN_ID="+t.Name(),
			"TORCHELASTIC_USE_AGENT_STORE=False", `QUOTES="a' $b`)
		for _, w := range want {
			if !slices.Contains(got, w) {
				t.Errorf("rank %d lacks %s", rank, w)
			}
		}
		for _, w := range []string{"MASTER_PORT=", "TORCHELASTIC_ERROR_FILE=/"} {
			if !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, w) && len(e) > len(w) }) {
				t.Errorf("rank %d lacks %s", rank, w)
			}
		}
		if slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "DDP_ROLE=") }) {
			t.Errorf("a foreign command has a role")
		}
		if has := slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "DDP_STORE_FD=") }); has != (rank == 0) {
			t.Errorf("rank %d has the store's socket: %v", rank, has)
		}
	}
}

// TestOneRankHasNoSocket also checks that it needs no rendezvous.
func TestOneRankHasNoSocket(t *testing.T) {
	j := newJob(t, "*.*=sockets", 1)
	if res := j.run(nil); res.ExitCode != 0 {
		t.Errorf("result %+v", res)
	}
	if out := j.lines["0.stdout"]; len(out) != 0 {
		t.Errorf("sockets and variables: %q", out)
	}
}

func TestContextKillsAtOnce(t *testing.T) {
	j := newJob(t, "*.*=stubborn", 2)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		j.await(2)
		cancel(cause)
	}()
	if _, err := Run(ctx, j.spec); !errors.Is(err, cause) {
		t.Errorf("run: %v", err)
	}
	noneLeft(t, j.mark)
}

func TestSpecsThatCannotRun(t *testing.T) {
	ranks := []Node{{Ranks: 1}}
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"no nodes":         {Spec{}, "no nodes"},
		"no ranks":         {Spec{Nodes: []Node{{}}}, "0 ranks"},
		"no command":       {Spec{Nodes: ranks, Command: []string{}}, "empty"},
		"unknown command":  {Spec{Nodes: ranks, Command: []string{"no-such-program"}}, "no-such-program"},
		"negative":         {Spec{Nodes: ranks, Grace: -1}, "negative"},
		"option as a host": {Spec{Nodes: []Node{{Host: "-oProxyCommand=x", Ranks: 1}}}, "no host name"},
		"log folder":       {Spec{Nodes: ranks, LogDir: "/proc/none"}, "log folder"},
	} {
		if _, err := Run(t.Context(), c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	res, err := Run(t.Context(), Spec{Nodes: ranks, Command: []string{"/no/such/program"}, MaxRestarts: 9})
	if err != nil || res.Failure == nil || res.Failure.ExitCode != 127 || !strings.Contains(res.Failure.Cause, "no such file") || res.Restarts != 0 {
		t.Errorf("missing program: %+v, %v", res, err)
	}
}

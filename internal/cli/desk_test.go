package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// freePort is one that nobody has just now; a job's joiners must know it.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// detachRun starts a detached run, which is stopped at the test's end, and
// returns its folder.
func detachRun(t *testing.T, dir string, sets ...string) string {
	t.Helper()
	code, stdout, stderr := execute(t, dir, append([]string{"run", "job.toml", "--detach"}, sets...)...)
	found := regexp.MustCompile(`^detached: process \d+, folder (\S+)\n$`).FindStringSubmatch(stdout)
	if code != 0 || found == nil {
		t.Fatalf("detach: code %d, %q, %q", code, stdout, stderr)
	}
	t.Cleanup(func() {
		execute(t, dir, "stop", "job.toml", "--now")
		noneLeft(t, dir)
	})
	return filepath.Join(dir, found[1])
}

// statusOf asks for a run's status.
func statusOf(t *testing.T, dir string) (s stated) {
	t.Helper()
	_, stdout, stderr := execute(t, dir, "status", "job.toml", "--json")
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("status %q, %q: %v", stdout, stderr, err)
	}
	return s
}

// attach watches the newest run.
func attach(t *testing.T, dir string) *proc {
	t.Helper()
	return start(t, dir, nil, "attach", "job.toml", "--json")
}

// TestDetach holds that a run outlives the terminal that started it, and that
// those who attach see all of it.
func TestDetach(t *testing.T) {
	dir := tinyFolder(t)
	folder := detachRun(t, dir, "--set", "train.max_steps=400")
	first := attach(t, dir)
	if _, ok := first.until(func(e event) bool { return e.Event == "step" && e.Step >= 20 }); !ok {
		t.Fatalf("no 20 steps: %s", first.stderr.String())
	}
	if s := statusOf(t, dir); !s.Running || s.Step < 20 || s.WorldSize != 2 || len(s.Nodes) != 1 {
		t.Errorf("status %+v", s)
	}
	code, _, stderr := execute(t, dir, "run", "job.toml")
	if code != 2 || !strings.Contains(stderr, "is being run already") {
		t.Errorf("a second run: code %d, %q", code, stderr)
	}
	if err := first.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := first.wait(); code != 0 || !strings.Contains(first.stderr.String(), "the run goes on") {
		t.Errorf("leaving: code %d, %q", code, first.stderr.String())
	}
	second := attach(t, dir)
	done := second.finish()
	stepsOnce(t, second, 400)
	if want := start(t, tinyFolder(t), nil, "run", "job.toml", "--json", "--set", "train.max_steps=400", "--set", "cluster.ranks=1").finish(); done.ParamsSHA256 != want.ParamsSHA256 {
		t.Errorf("hash %s, want %s", done.ParamsSHA256, want.ParamsSHA256)
	}
	if s := statusOf(t, dir); s.Running || s.Ended == nil || s.ExitCode != 0 {
		t.Errorf("status afterwards %+v", s)
	}
	_, log, _ := execute(t, dir, "logs", folder)
	if !strings.Contains(log, "done: 400 steps") {
		t.Errorf("log %q", log)
	}
}

// TestStop ends a detached run by command: after a snapshot of the last step.
func TestStop(t *testing.T) {
	dir := tinyFolder(t)
	detachRun(t, dir, "--set", "train.max_steps=100000", "--set", "snapshot.every_steps=0")
	p := attach(t, dir)
	p.until(func(e event) bool { return e.Event == "step" && e.Step >= 10 })
	if code, _, stderr := execute(t, dir, "stop", "job.toml"); code != 0 || !strings.Contains(stderr, "exit code 143") {
		t.Errorf("stop: code %d, %q", code, stderr)
	}
	if code := p.wait(); code != 143 {
		t.Errorf("attach ended with %d, want the run's 143", code)
	}
	step, ok := p.last("step")
	if saved, found := p.last("snapshot"); !ok || !found || saved.Step != step.Step {
		t.Errorf("snapshot of step %d, last step %d", saved.Step, step.Step)
	}
	if code, _, stderr := execute(t, dir, "stop", "job.toml"); code != 1 || !strings.Contains(stderr, "not running") {
		t.Errorf("stop again: code %d, %q", code, stderr)
	}
}

// TestDetachRefuses tells at once what is wrong, as without --detach.
func TestDetachRefuses(t *testing.T) {
	dir := tinyFolder(t)
	write(t, filepath.Join(dir, "snap"), "a file where the folder should be")
	code, stdout, stderr := execute(t, dir, "run", "job.toml", "--detach")
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "not a directory") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

// TestJoinAndDrain has a node come, leave by command, come again and leave by a
// signal; no step is lost and the result is that of an undisturbed run.
func TestJoinAndDrain(t *testing.T) {
	dir := tinyFolder(t)
	address := freePort(t)
	sets := []string{"--set", "train.max_steps=3000", "--set", "snapshot.every_steps=1000", "--set", fmt.Sprintf("cluster.listen=%q", address)}
	folder := detachRun(t, dir, sets...)
	p := attach(t, dir)
	world := func(n int) {
		t.Helper()
		if _, ok := p.until(func(e event) bool { return e.Event == "step" && e.WorldSize == n }); !ok {
			t.Fatalf("no step with %d ranks: %s", n, p.stderr.String())
		}
	}
	world(2)
	join := func() *exec.Cmd {
		cmd := exec.Command(binary, "join", address, "--secret-file", filepath.Join(folder, secretFile), "--ranks", "2")
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		world(4)
		return cmd
	}
	guest := join()
	if code, _, stderr := execute(t, dir, "drain", "job.toml", "--node", "1"); code != 0 {
		t.Fatalf("drain: code %d, %q", code, stderr)
	}
	if err := guest.Wait(); err != nil {
		t.Errorf("the drained node's join: %v", err)
	}
	world(2)
	guest = join()
	if err := guest.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := guest.Wait(); err != nil {
		t.Errorf("the leaving node's join: %v", err)
	}
	world(2)
	done := p.finish()
	stepsOnce(t, p, 3000)
	if p.count("failure") != 0 || done.Restarts != 0 {
		t.Errorf("%d failures, %d restarts, want none", p.count("failure"), done.Restarts)
	}
	if want := start(t, tinyFolder(t), nil, "run", "job.toml", "--json", "--set", "train.max_steps=3000", "--set", "cluster.ranks=1").finish(); done.ParamsSHA256 != want.ParamsSHA256 {
		t.Errorf("hash %s, want %s", done.ParamsSHA256, want.ParamsSHA256)
	}
}

// TestJoinWithoutSecret is turned away, and the job goes on.
func TestJoinWithoutSecret(t *testing.T) {
	dir := tinyFolder(t)
	address := freePort(t)
	detachRun(t, dir, "--set", "train.max_steps=100000", "--set", fmt.Sprintf("cluster.listen=%q", address))
	write(t, filepath.Join(dir, "wrong"), strings.Repeat("x", 32))
	code, _, stderr := execute(t, dir, "join", address, "--secret-file", "wrong")
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "does not know the job's secret") {
		t.Errorf("code %d, %q", code, stderr)
	}
	if s := statusOf(t, dir); !s.Running || len(s.Nodes) != 1 {
		t.Errorf("status %+v", s)
	}
}

// TestDiscover has nodes come and go with what a command prints.
func TestDiscover(t *testing.T) {
	dir := tinyFolder(t)
	write(t, filepath.Join(dir, "hosts"), "")
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=100000", "--set", "snapshot.every_steps=0",
		"--set", `cluster.discover="cat hosts"`, "--set", `cluster.discover_every="1s"`, "--set", "cluster.ranks=1")
	for _, change := range []struct {
		hosts string
		world int
	}{{"", 1}, {"localhost 2 # another agent\n", 3}, {"one two three\n", 3}, {"# nobody\n", 1}} {
		write(t, filepath.Join(dir, "hosts"), change.hosts)
		if _, ok := p.until(func(e event) bool { return e.Event == "step" && e.WorldSize == change.world }); !ok {
			t.Fatalf("no step with %d ranks: %s", change.world, p.stderr.String())
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 143 || p.count("failure") != 0 {
		t.Errorf("code %d, %d failures\n%s", code, p.count("failure"), p.stderr.String())
	}
}

func TestParseHosts(t *testing.T) {
	for _, c := range []struct {
		text, want string
	}{
		{"a\n\n b 4 # c\n", "map[a:0 b:4]"}, {"", "map[]"}, {"a 0", "no number of ranks"}, {"a b", "no number of ranks"},
		{"a 1 2", "not HOST or HOST RANKS"}, {"-oProxyCommand=x", "not HOST or HOST RANKS"},
	} {
		hosts, err := parseHosts([]byte(c.text))
		if got := fmt.Sprint(hosts, err); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// undisturbed is what tinyJob ends with when nothing happens.
func undisturbed(t *testing.T, sets ...string) event {
	t.Helper()
	dir := tinyFolder(t)
	return start(t, dir, nil, append([]string{"run", "job.toml", "--json"}, sets...)...).finish()
}

// TestSameBitsWhateverTheWorld runs one job with 1 to 4 ranks and 1 and 2
// threads: parameters, losses and evaluations must agree to the last bit.
func TestSameBitsWhateverTheWorld(t *testing.T) {
	want := undisturbed(t, "--set", "cluster.ranks=1")
	for _, ranks := range []int{2, 3, 4} {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			sameEnd(t, undisturbed(t, "--set", fmt.Sprintf("cluster.ranks=%d", ranks)), want)
		})
	}
	t.Run("2 threads", func(t *testing.T) { sameEnd(t, undisturbed(t, "--set", "train.threads=2"), want) })
}

// TestUnevenMasks trains on data most of whose targets are masked: the mean is
// over the whole world's targets, whoever has them.
func TestUnevenMasks(t *testing.T) {
	run := func(ranks int) event {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "job.toml"), adderJob)
		return start(t, dir, nil, "run", "job.toml", "--json", "--set", fmt.Sprintf("cluster.ranks=%d", ranks)).finish()
	}
	want := run(1)
	for _, ranks := range []int{2, 4} {
		sameEnd(t, run(ranks), want)
	}
}

const adderJob = `
model = { n_layer = 2, n_head = 2, n_embd = 32, dropout = 0.1 }
data = { source = "adder" }
train = { batch = 16, shards = 4, max_steps = 12, threads = 1 }
optimizer = { lr = 1e-3 }
snapshot = { dir = "" }
`

func sameEnd(t *testing.T, got, want event) {
	t.Helper()
	if got.ParamsSHA256 != want.ParamsSHA256 {
		t.Errorf("params_sha256 %s, want %s", got.ParamsSHA256, want.ParamsSHA256)
	}
	if got.Loss != want.Loss || *got.ValLoss != *want.ValLoss || got.Step != want.Step {
		t.Errorf("ends with step %d loss %v val %v, want %d %v %v", got.Step, got.Loss, *got.ValLoss, want.Step, want.Loss, *want.ValLoss)
	}
}

// TestTenKills kills a rank with SIGKILL ten times, each at a random step, and
// wants the undisturbed run's bits.
func TestTenKills(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json")
	random := rand.New(rand.NewPCG(1, 2))
	pids := map[int]int{}
	next, kills := 2, 0
	p.until(func(e event) bool {
		switch {
		case e.Event == "rank_up":
			pids[e.Rank] = e.PID
		case e.Event == "step" && e.Step >= next && kills < 10 && e.Generation == kills:
			kill(t, pids[random.IntN(2)], syscall.SIGKILL)
			kills++
			next = max(next, e.Step) + random.IntN(7)
		}
		return false
	})
	sameEnd(t, p.finish(), want)
	if kills != 10 || p.count("failure") < 10 || p.count("recovered") < 10 {
		t.Errorf("%d kills, %d failures, %d recoveries, want 10 each", kills, p.count("failure"), p.count("recovered"))
	}
	for _, e := range p.all {
		if e.Event == "failure" && e.Signal != "SIGKILL" {
			t.Errorf("failure blames %q (%s), want SIGKILL", e.Signal, e.Cause)
		}
	}
	noneLeft(t, dir)
}

func kill(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no pid to kill")
	}
	if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// TestInterruptedTwice stops at a random step, goes on, stops again and goes on
// to the end (trainers' complaint: the second resume loads a stale step). Every
// step's loss must be the undisturbed run's.
func TestInterruptedTwice(t *testing.T) {
	clean := start(t, tinyFolder(t), nil, "run", "job.toml", "--json")
	want := clean.finish()
	dir := tinyFolder(t)
	var losses []event
	for _, stopAt := range []int{17, 29} {
		p := start(t, dir, nil, "run", "job.toml", "--json")
		if _, ok := p.until(func(e event) bool { return e.Event == "step" && e.Step >= stopAt }); !ok {
			t.Fatalf("ended before step %d: %s", stopAt, p.stderr.String())
		}
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code := p.wait(); code != 130 {
			t.Fatalf("exit code %d after Ctrl-C, want 130\n%s", code, p.stderr.String())
		}
		noneLeft(t, dir)
		losses = append(losses, p.all...)
	}
	p := start(t, dir, nil, "run", "job.toml", "--json")
	sameEnd(t, p.finish(), want)
	sameSteps(t, append(losses, p.all...), clean.all)
}

// sameSteps wants each step once, in order, with the same loss as the clean run.
func sameSteps(t *testing.T, got, clean []event) {
	t.Helper()
	var want []event
	for _, e := range clean {
		if e.Event == "step" {
			want = append(want, e)
		}
	}
	i := 0
	for _, e := range got {
		if e.Event != "step" {
			continue
		}
		if i == len(want) || e.Step != want[i].Step || e.Loss != want[i].Loss {
			t.Fatalf("step event %d is step %d with loss %v, unlike the undisturbed run's", i, e.Step, e.Loss)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d step events, want %d", i, len(want))
	}
}

// TestSecondInterruptLeavesAtOnce stops ranks in mid-air: that is no clean stop
// and has the exit code of a failure.
func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=1000000", "--set", `recovery.grace="10m"`)
	pids := map[int]int{}
	p.until(func(e event) bool {
		if e.Event == "rank_up" {
			pids[e.Rank] = e.PID
		}
		return e.Event == "step" && e.Step == 3
	})
	kill(t, pids[1], syscall.SIGSTOP) // so that the clean stop cannot end
	ended := make(chan struct{})
	go func() { // signals that arrive together count as one, so it is pressed again and again
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
				_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended already
			}
		}
	}()
	code := p.wait()
	close(ended)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	noneLeft(t, dir)
}

// TestSignals holds SIGTERM's exit code and SIGUSR1's snapshot.
func TestSignals(t *testing.T) {
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=1000000", "--set", "snapshot.every_steps=0")
	p.until(func(e event) bool { return e.Event == "step" && e.Step == 3 })
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.until(func(e event) bool { return e.Event == "snapshot" }); !ok {
		t.Fatalf("SIGUSR1 took no snapshot: %s", p.stderr.String())
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if p.count("snapshot") != 2 {
		t.Errorf("%d snapshots, want one asked for and one at the stop", p.count("snapshot"))
	}
	noneLeft(t, dir)
}

// TestLauncherKilled leaves no orphan and loses no more than the last snapshot's steps.
func TestLauncherKilled(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json")
	p.until(func(e event) bool { return e.Event == "step" && e.Step == 33 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	noneLeft(t, dir)
	sameEnd(t, start(t, dir, nil, "run", "job.toml", "--json").finish(), want)
}

// TestCrashLoopGivesUp ends with exit code 3 and the root cause.
func TestCrashLoopGivesUp(t *testing.T) {
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "recovery.max_restarts=2", "--set", "train.max_steps=1000000")
	p.until(func(e event) bool {
		if e.Event == "rank_up" && e.Rank == 1 {
			kill(t, e.PID, syscall.SIGKILL)
		}
		return false
	})
	if code := p.wait(); code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if p.count("failure") != 3 {
		t.Errorf("%d failures, want 3", p.count("failure"))
	}
	noneLeft(t, dir)
}

// TestDamagedSnapshot flips a bit of the newest snapshot's model: the run says
// so, goes on from the one before and ends with the same bits.
func TestDamagedSnapshot(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json")
	p.until(func(e event) bool { return e.Event == "step" && e.Step == 33 })
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wait()
	newest, _ := p.last("snapshot")
	flipBit(t, filepath.Join(dir, newest.Path, "model.safetensors"))
	code, list, _ := execute(t, dir, "snapshots", "job.toml")
	if code != 5 || !strings.Contains(list, "damaged: ") {
		t.Errorf("snapshots: exit code %d, want 5 and the damage named:\n%s", code, list)
	}
	p = start(t, dir, nil, "run", "job.toml", "--json")
	sameEnd(t, p.finish(), want)
	if !warned(p, "model.safetensors") {
		t.Error("nothing was said about the damaged snapshot")
	}
}

func flipBit(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 4
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

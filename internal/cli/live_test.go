package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// hurt runs tinyJob and calls act once after each of the given steps, with the
// processes of all ranks.
func hurt(t *testing.T, dir string, steps []int, act func(nth int, pids map[int]int), sets ...string) *proc {
	t.Helper()
	p := start(t, dir, nil, append([]string{"run", "job.toml", "--json"}, sets...)...)
	pids, nth := map[int]int{}, 0
	p.until(func(e event) bool {
		switch {
		case e.Event == "rank_up":
			pids[e.Rank] = e.PID
		case e.Event == "step" && nth < len(steps) && e.Step >= steps[nth]:
			act(nth, pids)
			nth++
		}
		return false
	})
	if nth != len(steps) {
		t.Errorf("only %d of %d steps came\n%s", nth, len(steps), p.stderr.String())
	}
	return p
}

// stepsOnce wants steps 1 to n each told of once, in order.
func stepsOnce(t *testing.T, p *proc, n int) {
	t.Helper()
	next := 1
	for _, e := range p.all {
		if e.Event == "step" {
			if e.Step != next {
				t.Errorf("step %d came where %d was due", e.Step, next)
			}
			next = e.Step + 1
		}
	}
	if next != n+1 {
		t.Errorf("the last step was %d, want %d", next-1, n)
	}
}

// recoveries wants n of them, of one mode, that lost nothing.
func recoveries(t *testing.T, p *proc, n int, mode string) {
	t.Helper()
	got := 0
	for _, e := range p.all {
		if e.Event != "recovered" {
			continue
		}
		got++
		if e.Mode != mode || mode == "live" && e.LostSteps != 0 {
			t.Errorf("recovered by %q with %d steps lost, want %q", e.Mode, e.LostSteps, mode)
		}
	}
	if got != n {
		t.Errorf("%d recoveries, want %d\n%s", got, n, p.stderr.String())
	}
}

// TestEachRankKilledInTurn kills ranks 0, 1 and 2 of three: the others go on
// with what they hold, and no completed step is lost or told of twice.
func TestEachRankKilledInTurn(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{5, 13, 21}, func(nth int, pids map[int]int) { kill(t, pids[nth], syscall.SIGKILL) }, "--set", "cluster.ranks=3")
	sameEnd(t, p.finish(), want)
	recoveries(t, p, 3, "live")
	stepsOnce(t, p, want.Step)
	noneLeft(t, dir)
}

// TestTwoOfFourKilledAtOnce leaves two ranks that hold the state for two that don't.
func TestTwoOfFourKilledAtOnce(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{9}, func(_ int, pids map[int]int) {
		kill(t, pids[0], syscall.SIGKILL)
		kill(t, pids[2], syscall.SIGKILL)
	}, "--set", "cluster.ranks=4")
	sameEnd(t, p.finish(), want)
	stepsOnce(t, p, want.Step)
	noneLeft(t, dir)
}

// TestAllRanksKilled leaves nobody who holds the state: the last snapshot does.
func TestAllRanksKilled(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{17}, func(_ int, pids map[int]int) {
		for _, pid := range pids {
			kill(t, pid, syscall.SIGKILL)
		}
	})
	sameEnd(t, p.finish(), want)
	if e, ok := p.last("recovered"); !ok || e.Mode != "restart" {
		t.Errorf("recovered by %q, want the snapshot's restart", e.Mode)
	}
	noneLeft(t, dir)
}

// TestRestartMode starts all ranks anew though one would survive.
func TestRestartMode(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{7, 19}, func(_ int, pids map[int]int) { kill(t, pids[1], syscall.SIGKILL) }, "--set", `recovery.mode="restart"`)
	sameEnd(t, p.finish(), want)
	recoveries(t, p, 2, "restart")
	noneLeft(t, dir)
}

// TestStoppedRank stops a rank with SIGSTOP: the others wait for it without a
// clue, but it shows no sign of life, and is replaced.
func TestStoppedRank(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{11}, func(_ int, pids map[int]int) { kill(t, pids[1], syscall.SIGSTOP) })
	sameEnd(t, p.finish(), want)
	recoveries(t, p, 1, "live")
	stepsOnce(t, p, want.Step)
	if e, _ := p.last("failure"); e.Rank != 1 || !strings.Contains(e.Cause, "no sign of life") {
		t.Errorf("failure of rank %d: %q, want rank 1 that hangs", e.Rank, e.Cause)
	}
	recorded(t, dir, p, "step 11")
	noneLeft(t, dir)
}

// recorded fails unless the last failure tells what the rank's last collective
// was, and a file those before it.
func recorded(t *testing.T, dir string, p *proc, when string) {
	t.Helper()
	e, _ := p.last("failure")
	if !strings.Contains(e.LastOperation, " before") {
		t.Errorf("%s: the last collective is not told: %q", when, e.LastOperation)
	}
	path := e.FlightFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "gradient reduction") < 10 || !strings.Contains(string(text), "rank 1/2") {
		t.Errorf("%s: the flight recorder's file %q: %q %v", when, e.FlightFile, text, err)
	}
}

// TestKilledInTheLastStep kills a rank when only the end is left: a
// newcomer gets what the others hold, and all end alike.
func TestKilledInTheLastStep(t *testing.T) {
	want := undisturbed(t)
	dir := tinyFolder(t)
	p := hurt(t, dir, []int{want.Step}, func(_ int, pids map[int]int) { kill(t, pids[1], syscall.SIGKILL) })
	sameEnd(t, p.finish(), want)
	stepsOnce(t, p, want.Step)
	noneLeft(t, dir)
}

package elastic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// freeze stops a process so that not even SIGKILL ends it before the returned
// function is called, by version 1 of control groups; version 2 lets it die.
func freeze(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	dir := filepath.Join("/sys/fs/cgroup/freezer", fmt.Sprintf("ddp-test-%d", os.Getpid()))
	write := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skipf("this machine has no freezer that we may use: %v", err)
	}
	if err := write("cgroup.procs", fmt.Sprint(pid)); err != nil {
		t.Fatal(err)
	}
	if err := write("freezer.state", "FROZEN"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := write("freezer.state", "THAWED"); err != nil {
			t.Error(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnkillableRank has an agent kill two ranks of which one cannot die.
func TestUnkillableRank(t *testing.T) {
	t.Setenv(behaviourVariable, "*.*=wait")
	reports := newQueue[report]()
	a, err := newAgent(setup{Tree: "frozen:", Ranks: 2}, "frozen:", reports.put)
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	a.patience = 50 * time.Millisecond
	if err := a.do(command{Start: &startOrder{WorldSize: 2, Nodes: 1, Secret: []byte("s")}}); err != nil {
		t.Fatal(err)
	}
	ranks := a.crew.members
	thaw := freeze(t, ranks[1].proc.PID())
	defer func() {
		thaw()
		<-ranks[1].proc.Ended()
	}()
	if err := a.do(command{Kill: &generationRef{0}}); err != nil {
		t.Fatal(err)
	}
	<-a.crew.cleared
	var exited, stuck []int
	for _, r := range reports.take() {
		if r.Exited != nil {
			exited = append(exited, r.Exited.Rank)
		}
		if r.Quiet != nil {
			stuck = r.Quiet.Stuck
		}
	}
	if want := ranks[1].proc.PID(); !slices.Equal(exited, []int{0}) || !slices.Contains(stuck, want) {
		t.Errorf("ranks %v ended and %v are stuck, want 0 and process %d", exited, stuck, want)
	}
}

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ddp/internal/cluster"
)

// TestDiskFull has no room left for snapshots and logs during a run: it trains
// on, says so once, survives a killed rank, and takes snapshots again once there
// is room.
func TestDiskFull(t *testing.T) {
	if err := cluster.Unavailable(); err != nil {
		t.Skip("this machine cannot make hosts: ", err)
	}
	const steps = 400
	want := undisturbed(t, "--set", fmt.Sprint("train.max_steps=", steps))
	rig := cluster.NewRig(t, 0, 1)
	dir := tinyFolder(t)
	disk := filepath.Join(dir, "disk")
	script := fmt.Sprintf(`mkdir disk && mount -t tmpfs -o size=4m,nr_inodes=99 tmpfs disk && exec "$0" run job.toml --json --set snapshot.dir=disk/snap --set snapshot.every_steps=20 --set train.max_steps=%d`, steps)
	p := begin(t, rig.Head().Command(dir, "/bin/sh", "-c", script, binary), rig.Start)
	if _, ok := p.until(func(e event) bool { return e.Event == "snapshot" && e.Step >= 40 }); !ok {
		t.Fatalf("no snapshot: %s", p.stderr.String())
	}
	inside(t, rig, dir, "mkdir disk/fill; head -c 8m /dev/zero >disk/fill/0; i=1; while touch disk/fill/$i; do i=$((i+1)); done; test -s disk/fill/0")
	if _, ok := p.until(func(e event) bool { return e.Event == "warning" }); !ok {
		t.Fatalf("nothing tells of the full disk: %s", p.stderr.String())
	}
	told, _ := p.last("step")
	p.until(func(e event) bool { return e.Event == "step" && e.Step >= told.Step+65 }) // three more fail
	if n := p.count("warning"); n != 1 {
		t.Errorf("%d warnings of one full disk, want 1", n)
	}
	kill(t, rig.Head().Ranks()[0].PID, syscall.SIGKILL)
	if _, ok := p.until(func(e event) bool { return e.Event == "recovered" }); !ok {
		t.Fatalf("a killed rank was not replaced: %s", p.stderr.String())
	}
	inside(t, rig, dir, "rm -r disk/fill")
	if _, ok := p.until(func(e event) bool { return e.Event == "snapshot" }); !ok {
		t.Fatalf("no snapshot though there is room again: %s", p.stderr.String())
	}
	sameEnd(t, p.finish(), want)
	lines := strings.Split(strings.TrimSuffix(inside(t, rig, dir, "cat disk/snap/logs/*/events.jsonl"), "\n"), "\n")
	for i, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d of %d of the run's record was cut: %q", i+1, len(lines), line)
		}
	}
	if left := rig.Head().Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if files, _ := filepath.Glob(filepath.Join(disk, "*")); len(files) > 0 {
		t.Errorf("the disk was not mounted over %q", files)
	}
}

// inside runs a script on the rig's head and returns what it prints.
func inside(t *testing.T, rig *cluster.Rig, dir, script string) string {
	t.Helper()
	cmd := rig.Head().Command(dir, "/bin/sh", "-c", script)
	var out strings.Builder
	cmd.Stdout = &out
	if err := rig.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out.String()
}

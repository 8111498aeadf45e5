package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// succeed runs ddp, which must end with exit code 0, and returns its output.
func succeed(t *testing.T, dir string, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := execute(t, dir, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d\n%s", args, code, stderr)
	}
	return stdout, stderr
}

// TestOverview lists every command, however help is asked for.
func TestOverview(t *testing.T) {
	want, _ := succeed(t, t.TempDir(), "help")
	for _, c := range commands() {
		if !strings.Contains(want, "\n  "+c.name+" ") || !strings.Contains(want, " "+c.summary+"\n") {
			t.Errorf("command %s is not in\n%s", c.name, want)
		}
	}
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help", "help"}, {"help", "--help"}} {
		if got, _ := succeed(t, t.TempDir(), args...); got != want {
			t.Errorf("%q gives\n%s", args, got)
		}
	}
}

// TestHelpWithArguments needs no job to explain a command.
func TestHelpWithArguments(t *testing.T) {
	for _, c := range commands() {
		want, _ := succeed(t, t.TempDir(), "help", c.name)
		asked := [][]string{{c.name, "-h"}, {"--help", c.name}}
		if c.name != "launch" { // what follows its first word is the command's
			asked = append(asked, []string{c.name, "nope.toml", "--help"})
		}
		for _, args := range asked {
			if got, _ := succeed(t, t.TempDir(), args...); got != want {
				t.Errorf("%q gives\n%s", args, got)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	out, _ := succeed(t, t.TempDir(), "version")
	if !regexp.MustCompile(`^ddp \S+\ngo 1\.\S+ linux/amd64\ncpu generic( \S+)*\n$`).MatchString(out) {
		t.Errorf("%q", out)
	}
}

// TestCheck holds the forecast against sums done by hand: 21 symbols, 2 layers
// of 32 channels, block 16.
func TestCheck(t *testing.T) {
	dir := tinyFolder(t)
	const layer = 2*32 + 32*96 + 96 + 32*32 + 32 + 2*32 + 32*128 + 128 + 128*32 + 32
	const parameters = 21*32 + 16*32 + 2*layer + 2*32
	for _, c := range []struct {
		set                              string
		world, parameters, tokens, steps int
	}{
		{"cluster.ranks=2", 2, parameters, 16 * 16, 60},
		{"cluster.ranks=4", 4, parameters, 16 * 16, 60},
		{"train.batch=32", 2, parameters, 32 * 16, 60},
		{"model.tied=false", 2, parameters + 21*32, 16 * 16, 60},
		{"model.bias=false", 2, parameters - 2*(2*32+96+32+128+32) - 32, 16 * 16, 60},
		{`data.tokenizer="byte"`, 2, parameters + (256-21)*32, 16 * 16, 60},
		{"train.max_steps=7", 2, parameters, 16 * 16, 7},
	} {
		out, stderr := succeed(t, dir, "check", "job.toml", "--json", "--set", c.set)
		var f forecast
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatal(err)
		}
		if f.World != c.world || f.Parameters != c.parameters || f.TokensPerStep != c.tokens || f.Steps != c.steps ||
			f.SnapshotBytes != int64(c.parameters)*12 || f.MemoryPerRank <= f.SnapshotBytes || f.Threads != 1 || f.Nodes != 1 || stderr != "" {
			t.Errorf("%s: %+v, stderr %q, want %+v", c.set, f, stderr, c)
		}
		human, _ := succeed(t, dir, "check", "job.toml", "--set", c.set)
		for _, want := range []string{fmt.Sprintf("%d ranks on 1 nodes", c.world), fmt.Sprintf("%d tokens", c.tokens),
			fmt.Sprintf("%.2f M parameters", float64(c.parameters)/1e6), fmt.Sprintf("%d steps,", c.steps)} {
			if !strings.Contains(human, want) {
				t.Errorf("%s: %q is not in\n%s", c.set, want, human)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("check left %v, %v", left, err)
	}
}

// TestSnapshotsListed compares the list with the run's events and the folders.
func TestSnapshotsListed(t *testing.T) {
	dir := tinyFolder(t)
	if out, _ := succeed(t, dir, "snapshots", "job.toml"); out != "no snapshots yet\n" {
		t.Errorf("before the run: %q", out)
	}
	if out, _ := succeed(t, dir, "snapshots", "job.toml", "--json"); out != "" {
		t.Errorf("before the run, as JSON: %q", out)
	}
	done := start(t, dir, nil, "run", "job.toml", "--json").finish()
	out, _ := succeed(t, dir, "snapshots", "job.toml", "--json")
	human, _ := succeed(t, dir, "snapshots", "job.toml")
	rows := strings.Split(strings.TrimSpace(out), "\n")
	if len(rows) != 3 || strings.Count(human, "\n") != 4 || strings.Count(human, " good") != 3 {
		t.Fatalf("want 3 snapshots:\n%s%s", out, human)
	}
	for i, text := range rows {
		var row listed
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatal(err)
		}
		if row.Step != 60-5*i || row.Error != "" || !strings.Contains(human, row.Path) {
			t.Errorf("row %d: %+v\n%s", i, row, human)
		}
		if size := bytesIn(t, filepath.Join(dir, row.Path)); row.Bytes != size {
			t.Errorf("%s has %d bytes, %d listed", row.Path, size, row.Bytes)
		}
		if i == 0 && (row.ValLoss == nil || *row.ValLoss != *done.ValLoss || !row.Best) {
			t.Errorf("the last snapshot, %+v, is not the best, with loss %v", row, *done.ValLoss)
		}
	}
}

// bytesIn is the size of a snapshot's files, without the manifest that lists them.
func bytesIn(t *testing.T, dir string) int64 {
	t.Helper()
	var sum int64
	for path, size := range tree(t, dir) {
		if filepath.Base(path) != "manifest.json" {
			sum += size
		}
	}
	return sum
}

// TestFreshDeletesNothing finds every byte of two earlier runs again.
func TestFreshDeletesNothing(t *testing.T) {
	dir := tinyFolder(t)
	args := []string{"run", "job.toml", "--json", "--set", "train.max_steps=12", "--fresh"}
	first := start(t, dir, nil, args...)
	done := first.finish()
	older := contents(t, filepath.Join(dir, "snap"))
	for range 2 {
		again := start(t, dir, nil, args...)
		sameEnd(t, again.finish(), done)
		if again.count("step") != 12 || again.count("resumed") != 0 {
			t.Errorf("%d steps, not 12 from the start", again.count("step"))
		}
		if !strings.Contains(again.stderr.String(), "ddp: older snapshots are in snap/archive-") {
			t.Errorf("nothing is said about the older snapshots: %q", again.stderr.String())
		}
		now := contents(t, filepath.Join(dir, "snap"))
		for key, n := range older {
			if now[key] < n {
				t.Errorf("%s was there %d times, now %d", key.name, n, now[key])
			}
		}
		older = now
	}
	if aside, err := filepath.Glob(filepath.Join(dir, "snap/archive-*/step-000000012")); err != nil || len(aside) != 2 {
		t.Errorf("set aside are %v, %v", aside, err)
	}
}

// content is a snapshot's file, wherever it lies.
type content struct{ name, bytes string }

// contents counts the files of all snapshots below dir.
func contents(t *testing.T, dir string) map[content]int {
	t.Helper()
	all := map[content]int{}
	for path := range maps.Keys(tree(t, dir)) {
		folder := filepath.Base(filepath.Dir(path))
		if !strings.HasPrefix(folder, "step-") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[content{folder + "/" + filepath.Base(path), string(text)}]++
	}
	return all
}

// TestOtherRate goes on with the job's learning rate and says that it changed.
func TestOtherRate(t *testing.T) {
	dir := tinyFolder(t)
	rates := func(lr string, steps int) (map[int]float64, string) {
		out, stderr := succeed(t, dir, "run", "job.toml", "--json", "--set", "optimizer.lr="+lr, "--set", fmt.Sprintf("train.max_steps=%d", steps))
		all := map[int]float64{}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var e struct {
				Event string
				Step  int
				LR    float64
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Event == "step" {
				all[e.Step] = e.LR
			}
		}
		return all, stderr
	}
	before, _ := rates("6e-4", 7)
	for step, lr := range before { // a warm-up of 5 steps that does not begin at 0
		if want := 6e-4 * min(1, float64(step)/6); lr < want*(1-1e-12) || lr > want*(1+1e-12) {
			t.Errorf("step %d has rate %v, want %v", step, lr, want)
		}
	}
	after, stderr := rates("2e-4", 9)
	if len(before) != 7 || len(after) != 2 || after[8] != 2e-4 || after[9] != 2e-4 {
		t.Errorf("rates %v, then %v", before, after)
	}
	if !strings.Contains(stderr, "optimizer.lr: 0.0006 in the snapshot, 0.0002 in the job") {
		t.Errorf("nothing is said about the rate: %q", stderr)
	}
}

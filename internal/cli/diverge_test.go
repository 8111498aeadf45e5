package cli

import (
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDivergedRunEndsOnce follows a run whose rate is absurd: the step is named,
// nothing is started again, the snapshot from before stays, and a run with a
// sane rate goes on from it as if nothing had been.
func TestDivergedRunEndsOnce(t *testing.T) {
	want := undisturbed(t, "--set", "train.max_steps=20")
	for _, lr := range []string{"1e6", "1e30"} {
		dir := tinyFolder(t)
		start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=10").finish()
		p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=20", "--set", "snapshot.every_steps=100", "--set", "optimizer.lr="+lr)
		if code := p.wait(); code != 1 {
			t.Errorf("rate %s: exit code %d, want 1", lr, code)
		}
		diedOnce(t, p)
		noneLeft(t, dir)
		allFinite(t, filepath.Join(dir, "snap"))
		again := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=20")
		sameEnd(t, again.finish(), want)
		if e, _ := again.last("resumed"); e.Step != 10 {
			t.Errorf("rate %s: went on from step %d, want 10", lr, e.Step)
		}
	}
}

// diedOnce wants one failure, in the step after the last good one.
func diedOnce(t *testing.T, p *proc) {
	t.Helper()
	last, ok := p.last("step")
	failure, _ := p.last("failure")
	if cause := fmt.Sprintf("step %d diverged: ", last.Step+1); !ok || p.count("failure") != 1 || !strings.Contains(failure.Cause, cause) {
		t.Errorf("%d failures, the last %q, want one with %q", p.count("failure"), failure.Cause, cause)
	}
	if p.count("recovered") != 0 || p.count("done") != 0 || p.count("rank_up") != 2 {
		t.Errorf("%d recoveries, %d ends, %d starts of ranks", p.count("recovered"), p.count("done"), p.count("rank_up"))
	}
	for _, e := range p.all {
		if e.Event == "step" && (math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0)) {
			t.Errorf("step %d counts as done with loss %v", e.Step, e.Loss)
		}
	}
}

// TestNoSnapshotHoldsNaN takes one after every step on the way to the end.
func TestNoSnapshotHoldsNaN(t *testing.T) {
	for _, more := range []string{"optimizer.lr=1e6", "optimizer.grad_clip=0.0", "optimizer.warmup_steps=0"} {
		dir := tinyFolder(t)
		p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "optimizer.lr=1e30", "--set", "snapshot.every_steps=1",
			"--set", "snapshot.keep=100", "--set", more)
		if code := p.wait(); code != 1 {
			t.Errorf("%s: exit code %d, want 1", more, code)
		}
		diedOnce(t, p)
		if allFinite(t, filepath.Join(dir, "snap")) == 0 {
			t.Errorf("%s: no snapshot of a step that was done", more)
		}
		left, err := filepath.Glob(filepath.Join(dir, "snap/*tmp*"))
		if out, _ := succeed(t, dir, "snapshots", "job.toml"); err != nil || len(left) > 0 || strings.Contains(out, "damaged") {
			t.Errorf("%s: left over %v, %v\n%s", more, left, err, out)
		}
	}
}

// allFinite reads every number of every snapshot below dir and counts the files.
func allFinite(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "step-*", "*.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for i, x := range numbersOf(t, file) {
			if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s: number %d is %v", file, i, x)
				break
			}
		}
	}
	return len(files)
}

// numbersOf is the buffer of a safetensors file whose tensors are all float32.
func numbersOf(t *testing.T, file string) []float32 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	size := endian.LittleEndian.Uint64(text)
	header, buffer := text[8:8+size], text[8+size:]
	var entries map[string]struct{ DType string }
	if err := json.Unmarshal(header, &entries); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for name, e := range entries {
		if name != "__metadata__" && e.DType != "F32" {
			t.Fatalf("%s: %s is %s", file, name, e.DType)
		}
	}
	x := make([]float32, len(buffer)/4)
	for i := range x {
		x[i] = math.Float32frombits(endian.LittleEndian.Uint32(buffer[4*i:]))
	}
	return x
}

// TestEvaluationWhateverTheWorld evaluates 5,565 windows, the last of them not
// full: a number that neither 2 nor 4 ranks nor the groups of 2 divide.
func TestEvaluationWhateverTheWorld(t *testing.T) {
	const windows, block = 5565, 16
	evals := func(ranks int) []float64 {
		dir := tinyFolder(t)
		words := strings.Repeat(tinyText(), 1+(windows*block*5/4)/len(tinyText()))
		write(t, filepath.Join(dir, "text.txt"), words[:(windows-1)*block+6+20000])
		split := fmt.Sprintf("data.split=%v", 20000.5/float64((windows-1)*block+6+20000))
		p := start(t, dir, nil, "run", "job.toml", "--json", "--set", fmt.Sprintf("cluster.ranks=%d", ranks), "--set", split,
			"--set", "train.max_steps=4", "--set", "train.eval_every=2", "--set", `snapshot.dir=""`, "--set", "optimizer.warmup_steps=0")
		p.finish()
		var all []float64
		for _, e := range p.all {
			if e.Event == "eval" {
				all = append(all, *e.ValLoss)
			}
		}
		return all
	}
	want := evals(1)
	if len(want) != 2 {
		t.Fatalf("%d evaluations, want 2", len(want))
	}
	for _, ranks := range []int{2, 3, 4} {
		if got := evals(ranks); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d ranks: %v, 1 rank: %v", ranks, got, want)
		}
	}
}

// TestResumeInAnotherWorld changes the number of ranks at each of two stops: no
// sample is repeated or left out, so the end has the undisturbed run's bits.
func TestResumeInAnotherWorld(t *testing.T) {
	clean := start(t, tinyFolder(t), nil, "run", "job.toml", "--json")
	want := clean.finish()
	dir := tinyFolder(t)
	var events []event
	for _, part := range []struct{ ranks, until int }{{1, 17}, {4, 40}, {3, 60}} {
		p := start(t, dir, nil, "run", "job.toml", "--json",
			"--set", fmt.Sprintf("cluster.ranks=%d", part.ranks), "--set", fmt.Sprintf("train.max_steps=%d", part.until))
		p.finish()
		events = append(events, p.all...)
		if part.until == 60 {
			sameEnd(t, p.finish(), want)
		}
	}
	sameSteps(t, events, clean.all)
}

// TestTruncatedSnapshot has files one byte short, as of a write that was cut
// off: the run goes on from the snapshot before and ends with the same bits.
func TestTruncatedSnapshot(t *testing.T) {
	want := undisturbed(t)
	for _, file := range []string{"model.safetensors", "optimizer.safetensors", "manifest.json", "tokenizer.json"} {
		dir := tinyFolder(t)
		start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=30").finish()
		path := filepath.Join(dir, "snap/step-000000030", file)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, info.Size()-1); err != nil {
			t.Fatal(err)
		}
		p := start(t, dir, nil, "run", "job.toml", "--json")
		sameEnd(t, p.finish(), want)
		if e, _ := p.last("resumed"); e.Step != 25 || !warned(p, "step-000000030") {
			t.Errorf("%s: went on from step %d, want 25 and a warning", file, e.Step)
		}
	}
}

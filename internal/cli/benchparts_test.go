package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddp/model/compute/timed"
)

// TestCounted keeps what belongs to the last two steps of three.
func TestCounted(t *testing.T) {
	at := func(name string, from, took int) timed.Span {
		return timed.Span{Name: name, Began: time.Unix(int64(from), 0), Took: time.Duration(took) * time.Second}
	}
	spans := []timed.Span{at("copy", 0, 1), at(timed.WaitForData, 1, 1), at(timed.Step, 2, 5), at("linear", 3, 1),
		at(timed.WaitForData, 8, 1), at(timed.Step, 10, 5), at("linear", 11, 2), at(timed.WaitForData, 16, 1), at(timed.Step, 20, 5), at("linear", 21, 3), at("copy", 25, 9)}
	if got := counted(spans, 1); len(got) != 6 || got[0] != spans[4] || got[5] != spans[9] {
		t.Errorf("counted %+v", got)
	}
	parts := stepParts([][]timed.Span{counted(spans, 1)}, peaks{1, 1})
	want := map[string][2]float64{"linear": {2500, 5.0 / 12}, timed.WaitForData: {1000, 2.0 / 12}, "all else": {2500, 5.0 / 12}}
	for _, p := range parts {
		if w := want[p.Name]; math.Abs(p.MS-w[0]) > 1e-6 || math.Abs(p.Share-w[1]) > 1e-9 || p.Calls != 1 {
			t.Errorf("%+v, want %v", p, w)
		}
	}
	if len(parts) != len(want) {
		t.Errorf("%d parts, want %d", len(parts), len(want))
	}
	if got := counted(spans[:2], 1); len(got) != 0 {
		t.Errorf("without steps: %+v", got)
	}
}

// TestBenchStepParts runs two ranks: the parts make up the whole step, each
// operation is called as often as the model has it, and the trace has all ranks.
func TestBenchStepParts(t *testing.T) {
	dir := tinyFolder(t)
	if err := os.Mkdir(filepath.Join(dir, "corpus"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "corpus/opticks.txt"), tinyText())
	code, stdout, stderr := execute(t, dir, "bench", "step", "--layers", "3", "--heads", "2", "--embd", "32", "--block", "16", "--batch", "2", "--steps", "4", "--json", "--trace", "trace.json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	share, calls := 0.0, map[string]float64{}
	for dec := json.NewDecoder(strings.NewReader(stdout)); dec.More(); {
		var r partResult
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		share += r.Share
		calls[r.Name] = r.Calls
	}
	if math.Abs(share-1) > 1e-9 {
		t.Errorf("the shares add up to %v", share)
	}
	for name, want := range map[string]float64{"attention": 3, "attention, backward": 3, "linear + GELU": 3, "linear + residual": 6, "logits": 1, "wait for peers": 1} {
		if calls[name] != want {
			t.Errorf("%s: %v calls a step, want %v", name, calls[name], want)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	var trace struct{ TraceEvents []traceEvent }
	if err != nil || json.Unmarshal(text, &trace) != nil {
		t.Fatalf("the trace: %v", err)
	}
	steps := [2]int{}
	for _, e := range trace.TraceEvents {
		if e.Name == timed.Step {
			steps[e.PID]++
		}
	}
	if steps != [2]int{6, 6} {
		t.Errorf("the trace has %v steps of each rank, want 6", steps)
	}
}

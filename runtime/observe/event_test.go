package observe

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

func number(x float64) *float64 { return &x }

// all is one event of each kind, every field set.
var all = []Event{
	RankUp{1, 2, "a", 3, 4, 5, "cpu", "avx2"},
	Step{1, 2, 3.5, 4.5, 5.5, 6.5, 7.5, 8, 9},
	Eval{1, 2.5, number(0.5)},
	Snapshot{1, "p", 2, 3.5, 4.5},
	Failure{1, "a", 2, "c <\"&\u2028>", 3, "SIGKILL", "e", 4, "all-reduce 3", "f.txt", []string{"x", "\x1b[31my"}},
	Recovered{"restart", 1, 2, 3, 4, 5.5},
	Regrouped{1, 2, 3, "peers"},
	Member{"left", "a", 1, "r"},
	Done{1, 2.5, number(3.5), 4.5, "ab", 5},
	Resumed{1, "p"}, Warning{"m"}, Check{"c", true}, Bench{"b", 1, 2.5, 3.5, 4.5, 6},
}

func TestRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range all {
		line, err := Marshal(at, e)
		if err != nil {
			t.Fatal(err)
		}
		gotAt, got, err := Parse(line)
		if err != nil || !gotAt.Equal(at) || !reflect.DeepEqual(got, e) {
			t.Errorf("%s\ncame back as %v %#v, %v", line, gotAt, got, err)
		}
		seen[e.Kind()] = true
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("kind %s is not tested", kind)
		}
	}
}

// TestContract pins what scripts rely on: the fields of each event and their
// JSON types, the time's form, one line each.
func TestContract(t *testing.T) {
	want := map[string]string{
		"rank_up":   "rank:1 local_rank:2 host:a pid:3 generation:4 world_size:5 device:cpu isa:avx2",
		"step":      "step:1 epoch:2 loss:3.5 lr:4.5 grad_norm:5.5 tokens_per_s:6.5 step_ms:7.5 generation:8 world_size:9",
		"eval":      "step:1 val_loss:2.5 accuracy:0.5",
		"snapshot":  "step:1 path:p bytes:2 stall_ms:3.5 write_ms:4.5",
		"recovered": "mode:restart generation:1 world_size:2 step:3 lost_steps:4 down_ms:5.5",
		"member":    "change:left host:a world_size:1 reason:r",
		"done":      "step:1 loss:2.5 val_loss:3.5 tokens_per_s:4.5 params_sha256:ab restarts:5",
	}
	for _, e := range append(all, Failure{1, "a", 2, "c", 3, "SIGKILL", "e", 4, "", "", nil}) {
		line, err := Marshal(at, e)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil || bytes.ContainsAny(line, "\n\r") {
			t.Fatalf("%q: %v", line, err)
		}
		if fields["event"] != e.Kind() || fields["time"] != "2026-03-04T05:06:07.000000089Z" {
			t.Errorf("begins as %s", line)
		}
		wanted := want[e.Kind()]
		if f, ok := e.(Failure); ok && f.LogTail == nil {
			wanted = "rank:1 host:a pid:2 cause:c exit_code:3 signal:SIGKILL error_file:e generation:4"
		}
		if wanted == "" {
			continue
		}
		delete(fields, "event")
		delete(fields, "time")
		for _, f := range strings.Fields(wanted) {
			name, value, _ := strings.Cut(f, ":")
			if text, err := json.Marshal(fields[name]); err != nil || strings.Trim(string(text), `"`) != value {
				t.Errorf("%s: %s is %s, %v, want %s", e.Kind(), name, text, err, value)
			}
			delete(fields, name)
		}
		if len(fields) > 0 {
			t.Errorf("%s has more fields: %v", e.Kind(), slices.Sorted(maps.Keys(fields)))
		}
	}
}

// TestNotFinite holds that a run that diverges still writes JSON, and that what
// reads it is told so.
func TestNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, e := range []Event{
			Step{Step: 1, Loss: x, LR: 0.5, GradNorm: x, TokensPerS: x, StepMS: x}, Eval{Step: 1, ValLoss: x}, Recovered{DownMS: x},
			Snapshot{StallMS: x, WriteMS: x}, Done{Loss: x, ValLoss: &x, TokensPerS: x}, Bench{MS: x, AlgGBs: x, BusGBs: x},
		} {
			line, err := Marshal(at, e)
			if err != nil || !json.Valid(line) || !bytes.Contains(line, []byte(":null")) {
				t.Errorf("%#v became %s, %v", e, line, err)
			}
			_, got, err := Parse(line)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			switch got := got.(type) {
			case Step:
				if !math.IsNaN(got.Loss) || !math.IsNaN(got.GradNorm) || got.LR != 0.5 {
					t.Errorf("%s came back as %#v", line, got)
				}
			case Done:
				if !math.IsNaN(got.Loss) || got.ValLoss != nil {
					t.Errorf("%s came back as %#v", line, got)
				}
			}
		}
	}
}

func TestBadLines(t *testing.T) {
	const good = `"event":"resumed","time":"2026-03-04T05:06:07Z"`
	if _, e, err := Parse([]byte(`{` + good + `,"step":3,"path":"p"}` + "\n")); err != nil || e != (Resumed{3, "p"}) {
		t.Fatalf("the good one: %v, %v", e, err)
	}
	for line, want := range map[string]string{
		``: "no JSON object", `[]`: "no JSON object", `null`: "no JSON object", `{`: "EOF", `{"a":1`: "EOF", `{"a"}`: "colon",
		`{}`: "event is missing", `{"event":"step"}`: "time is missing", `{"event":1,"time":""}`: "event: ",
		`{"event":"step","time":"x"}`:                                 "step: time: ",
		`{"event":"step","time":"2026-13-04T05:06:07Z"}`:              "step: time: ",
		`{"event":"step","time":"9999-12-31T23:59:59-23:59"}`:         "out of range",
		`{"event":"no","time":"2026-03-04T05:06:07Z"}`:                `unknown kind "no"`,
		`{` + good + `,"step":3}`:                                     "path is missing",
		`{` + good + `,"step":3,"path":"p","surprise":1}`:             `unknown field "surprise"`,
		`{` + good + `,"step":3,"Path":"p"}`:                          "path is missing",
		`{` + good + `,"step":3,"path":"p","step":4}`:                 "step is there twice",
		`{` + good + `,"step":null,"path":"p"}`:                       "step is null",
		`{` + good + `,"step":1.5,"path":"p"}`:                        "step: ",
		`{` + good + `,"step":"3","path":"p"}`:                        "step: ",
		`{` + good + `,"step":3,"path":"p"} {}`:                       "follows",
		`{"event":"eval","time":"2026-03-04T05:06:07Z","step":1}`:     "val_loss is missing",
		`{"event":"warning","time":"2026-03-04T05:06:07Z","message"}`: "colon",
	} {
		if _, e, err := Parse([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %#v, error %v, want %q", line, e, err, want)
		}
	}
	for _, year := range []int{-1, 10000} {
		if line, err := Marshal(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC), Warning{"m"}); err == nil {
			t.Errorf("year %d became %s", year, line)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range append(all, Step{Loss: math.NaN()}, Done{}) {
		line, err := Marshal(at, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"event":"failure","time":"0000-01-01T00:00:00+23:59","rank":0,"host":"","pid":0,"cause":"","exit_code":0,"signal":"","error_file":"","generation":0,"log_tail":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		when, e, err := Parse(line)
		if err != nil {
			return
		}
		again, err := Marshal(when, e)
		if err != nil || !json.Valid(again) {
			t.Fatalf("%q was read but written as %q, %v", line, again, err)
		}
		when2, e2, err := Parse(again)
		if err != nil || !when2.Equal(when) {
			t.Fatalf("%q became %q: %v, %v", line, again, when2, err)
		}
		if third, err := Marshal(when2, e2); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%q is not stable: %q, then %q, %v", line, again, third, err)
		}
	})
}

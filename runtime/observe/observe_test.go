package observe

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

func number(x float64) *float64 { return &x }

// all is one event of each kind, every field set.
var all = []Event{
	RankUp{1, 2, "a", 3, 4, 5, "cpu", "avx2"}, Step{1, 2, 3.5, 4.5, 5.5, 6.5, 7.5, 8, 9}, Eval{1, 2.5, number(0.5)},
	Snapshot{1, "p", 2, 3.5, 4.5}, Failure{1, "a", 2, "c", 3, "SIGKILL", "e", 4, []string{"x"}}, Recovered{"restart", 1, 2, 3, 4, 5.5},
	Member{"left", "a", 1, "r"}, Done{1, 2.5, number(3.5), 4.5, "ab", 5}, Resumed{1, "p"}, Warning{"m"}, Check{"c", true}, Bench{"b", 1, 2.5, 3.5, 4.5, 6},
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
	for kind := range decoders {
		if !seen[kind] {
			t.Errorf("kind %s is not tested", kind)
		}
	}
}

// TestContract pins the fields that scripts rely on.
func TestContract(t *testing.T) {
	want := map[string]string{
		"rank_up": "device generation host isa local_rank pid rank world_size", "step": "epoch generation grad_norm loss lr step step_ms tokens_per_s world_size",
		"snapshot": "bytes path stall_ms step write_ms", "member": "change host reason world_size",
		"recovered": "down_ms generation lost_steps mode step world_size", "done": "loss params_sha256 restarts step tokens_per_s val_loss",
	}
	for _, e := range all {
		line, err := Marshal(at, e)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if fields["time"] != "2026-03-04T05:06:07.000000089Z" {
			t.Errorf("time is %v", fields["time"])
		}
		for _, f := range strings.Fields(want[e.Kind()]) {
			if _, ok := fields[f]; !ok {
				t.Errorf("%s has no field %s: %s", e.Kind(), f, line)
			}
		}
	}
}

func TestBadLines(t *testing.T) {
	for _, line := range []string{``, `{}`, `[]`, `{"event":"step"}`, `{"event":"step","time":"x"}`, `{"event":"no","time":"2026-03-04T05:06:07Z"}`,
		`{"event":"eval","time":"2026-03-04T05:06:07Z","surprise":1}`} {
		if _, e, err := Parse([]byte(line)); err == nil {
			t.Errorf("%s was read as %#v", line, e)
		}
	}
	if _, err := Marshal(at, Step{Loss: math.NaN()}); err == nil {
		t.Error("a NaN became JSON")
	}
}

func FuzzParse(f *testing.F) {
	for _, e := range all {
		line, err := Marshal(at, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		when, e, err := Parse(line)
		if err != nil {
			return
		}
		again, err := Marshal(when, e)
		if err != nil {
			t.Fatalf("%q was read but not written: %v", line, err)
		}
		if _, e2, err := Parse(again); err != nil || !reflect.DeepEqual(e, e2) {
			t.Fatalf("%q is not stable: %v", line, err)
		}
	})
}

// screen is a terminal that knows CR, LF and "erase to the end of the line",
// and fails where a line would wrap.
type screen struct {
	t     *testing.T
	width int
	lines []string
	col   int
}

func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			s.cut()
			text = text[3:]
			continue
		case text[0] == '\r':
			s.col = 0
		case text[0] == '\n':
			s.lines, s.col = append(s.lines, ""), 0
		default:
			s.put(text[0])
		}
		text = text[1:]
	}
	return len(p), nil
}

func (s *screen) cut() { s.lines[len(s.lines)-1] = s.lines[len(s.lines)-1][:s.col] }

func (s *screen) put(c byte) {
	line := &s.lines[len(s.lines)-1]
	if s.col != len(*line) {
		s.t.Errorf("%q is written over %q", c, *line)
	}
	*line, s.col = *line+string(c), s.col+1
}

// TestTerminal draws a run at several widths: the bar never reaches the edge,
// nothing of it stays behind, and every message is a whole line.
func TestTerminal(t *testing.T) {
	for _, width := range []int{20, 40, 80, 200} {
		s := &screen{t: t, width: width, lines: []string{""}}
		sink := NewTerminal(s, true, false, func() int { return width }, 10)
		for i := 1; i <= 10; i++ {
			sink.Emit(at.Add(time.Duration(i)*time.Second), Step{Step: i, Loss: 3, TokensPerS: 12345, StepMS: 9e5, LR: 1e-3, Generation: i / 6})
			if bar := s.lines[len(s.lines)-1]; len(bar) >= width {
				t.Errorf("width %d: the bar has %d columns: %q", width, len(bar), bar)
			}
			if i == 5 {
				sink.Emit(at, Failure{Rank: 1, Host: "h", Cause: "killed by SIGKILL", LogTail: []string{"last words"}, ErrorFile: "e.json"})
				sink.Line(0, "stderr", []byte("hello"))
			}
		}
		sink.Close()
		want := []string{"rank 1 on h failed: killed by SIGKILL", "    last words", "    more in e.json", "[rank 0] hello"}
		if got := s.lines[:len(s.lines)-2]; !reflect.DeepEqual(got, want) {
			t.Errorf("width %d: above the bar stand %q, want %q", width, got, want)
		}
	}
}

// TestPlain pins the lines that a log gets.
func TestPlain(t *testing.T) {
	var out bytes.Buffer
	sink := NewTerminal(&out, false, false, func() int { return 80 }, 100)
	for i := 1; i <= 100; i++ {
		sink.Emit(at, Step{Step: i, Loss: 2, TokensPerS: 1500, StepMS: 1000, LR: 3e-4})
	}
	sink.Emit(at, Eval{Step: 100, ValLoss: 1.5, Accuracy: number(0.995)})
	sink.Emit(at, Done{Step: 100, Loss: 2, ValLoss: number(1.5), TokensPerS: 1500, ParamsSHA256: "abc", Restarts: 1})
	sink.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 24 || lines[0] != "1/100  loss 2.0000  1m39s left  1.5k tok/s  lr 0.0003" {
		t.Errorf("%d lines, the first %q", len(lines), lines[0])
	}
	want := "step 100: validation loss 1.5000, 99.50% of held-out questions right\ndone: 100 steps, loss 2.0000, validation loss 1.5000, 1500 tokens/s, 1 restarts\nparameters abc"
	if got := strings.Join(lines[len(lines)-3:], "\n"); got != want {
		t.Errorf("ends with\n%s\nwant\n%s", got, want)
	}
}

func TestRemaining(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3661 * time.Second: "1h01m"} {
		if got := remaining(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for x, want := range map[float64]string{999: "999", 1234: "1.2k", 12345: "12k", 1234567: "1.2M"} {
		if got := short(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

package observe

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

// story is a run with everything in it: each call shows one thing, a second
// after the one before.
func story() []func(s Sink, at time.Time) {
	var acts []func(s Sink, at time.Time)
	emit := func(e Event) { acts = append(acts, func(s Sink, at time.Time) { s.Emit(at, e) }) }
	steps := func(from, to, generation int) {
		for i := from; i <= to; i++ {
			emit(Step{Step: i, Epoch: 1, Loss: 4 / math.Sqrt(float64(i)), LR: 3e-4, GradNorm: 1, TokensPerS: 15000 + float64(i%7)*500,
				StepMS: 1000, Generation: generation, WorldSize: 2})
		}
	}
	line := func(rank int, text string) {
		acts = append(acts, func(s Sink, _ time.Time) { s.Line(rank, "stderr", []byte(text)) })
	}
	emit(RankUp{Rank: 1, WorldSize: 2, Device: "cpu", ISA: "avx2"})
	emit(RankUp{Rank: 0, WorldSize: 2, Device: "cpu", ISA: "avx2"})
	line(1, "before the first step")
	steps(1, 30, 0)
	emit(Eval{Step: 30, ValLoss: 0.8125})
	emit(Snapshot{Step: 30, Path: "runs/x/step-000000030", Bytes: 1 << 20, StallMS: 1.4, WriteMS: 20})
	steps(31, 57, 0)
	line(1, "10%\r50%\r\x1b[2K\x1b[1;32m100%\x1b[0m done\x1b]0;title\x07\r")
	line(0, "")
	emit(Failure{Rank: 3, Host: "host", PID: 7, Cause: "killed by SIGKILL", Signal: "SIGKILL", ErrorFile: "logs/gen-0/error.json",
		LogTail: []string{"step 57", "", "a line longer than the window of a terminal of eighty columns, so that it has to be wrapped there\x1b[A"}})
	emit(Member{Change: "left", Host: "b", WorldSize: 2, Reason: "drained"})
	emit(Resumed{Step: 30, Path: "runs/x/step-000000030"})
	steps(31, 31, 1)
	emit(Recovered{Mode: "restart", Generation: 1, WorldSize: 2, Step: 31, LostSteps: 27, DownMS: 530})
	emit(Warning{Message: "snapshot at step 31: the disk is full\n(more of it)"})
	steps(32, 70, 1)
	acts = append(acts, func(s Sink, _ time.Time) { s.Note("stopping after this step") })
	emit(Failure{Rank: 0, Cause: "train: step 71: the loss is NaN\nin layer 3", ExitCode: 1})
	emit(Step{Step: 71, Loss: math.NaN(), LR: 3e-4, GradNorm: math.Inf(1), TokensPerS: math.NaN(), StepMS: math.Inf(1), Generation: 1, WorldSize: 1})
	steps(72, 100, 2)
	emit(Eval{Step: 100, ValLoss: 0.75, Accuracy: number(0.995)})
	emit(Done{Step: 100, Loss: 0.4, ValLoss: number(0.75), TokensPerS: 15432.1, ParamsSHA256: "abc", Restarts: 2})
	return acts
}

// TestGolden compares a whole run with what a person found good: on terminals,
// each state of the screen's last row and all that is left in the end; in a log,
// and with colours, the bytes.
func TestGolden(t *testing.T) {
	for name, tell := range map[string]func() string{
		"tty80.golden":  func() string { return toldOn(t, 80) },
		"tty40.golden":  func() string { return toldOn(t, 40) },
		"tty20.golden":  func() string { return toldOn(t, 20) },
		"log.golden":    func() string { return toldAs(false, false) },
		"colour.golden": func() string { return strings.ReplaceAll(toldAs(true, true), "\x1b", "ESC") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name)
			got := tell()
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range max(len(gotLines), len(wantLines)) {
				if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
					t.Fatalf("line %d differs; now:\n%s", i+1, got)
				}
			}
		})
	}
}

func toldOn(t *testing.T, width int) string {
	s := newScreen(t, width)
	sink := NewTerminal(s, true, false, func() int { return width }, 100)
	var out strings.Builder
	last := ""
	for i, act := range story() {
		act(sink, at.Add(time.Duration(i)*time.Second))
		if bar := s.rows[len(s.rows)-1].text; bar != last {
			fmt.Fprintf(&out, "%3d %s\n", i, bar)
			last = bar
		}
	}
	sink.Close()
	return out.String() + "\nIn the end:\n" + strings.Join(s.text(), "\n")
}

func toldAs(tty, color bool) string {
	var out bytes.Buffer
	sink := NewTerminal(&out, tty, color, func() int { return 80 }, 100)
	for i, act := range story() {
		act(sink, at.Add(time.Duration(i)*time.Second))
	}
	sink.Close()
	return strings.ReplaceAll(out.String(), "\r", "CR")
}

// TestNothingRemains shows random runs on terminals whose window changes at
// random: above the bar stand exactly the messages, and the bar is one row that
// does not reach the edge.
func TestNothingRemains(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		width := 8 + random.IntN(120)
		s := newScreen(t, width)
		sink := NewTerminal(s, true, random.IntN(2) == 0, func() int { return width }, 50)
		var said []string
		for i := 1; i <= 50; i++ {
			var told []string
			switch when := at.Add(time.Duration(i) * 60 * time.Millisecond); random.IntN(4) {
			case 0:
				text := strings.Repeat("word ", random.IntN(40)) + "end"
				sink.Line(1, "stdout", []byte("\x1b[5A"+text+"\x1b[K"))
				told = []string{"[rank 1] " + text}
			case 1:
				sink.Emit(when, Failure{Rank: 2, Host: "h", Cause: "exit code 3", LogTail: []string{"one"}, ErrorFile: "f"})
				told = []string{"rank 2 on h failed: exit code 3", "    its last lines:", "    | one", "    error file: f"}
			case 2:
				if random.IntN(2) == 0 && i > 1 { // from a wide window, all of them wrap
					width = 8 + random.IntN(120)
					s.reflow(width)
				}
				fallthrough
			default:
				sink.Emit(when, Step{Step: i, Loss: 3, LR: 1e-3, TokensPerS: 1e5, StepMS: 9e6, WorldSize: 4, Generation: i / 20})
			}
			said = append(said, told...)
			if !standsAbove(s, said) {
				t.Fatalf("seed %d, act %d, width %d: the screen is\n%s\nwant above the bar\n%s", seed, i, width, strings.Join(s.text(), "\n"), strings.Join(said, "\n"))
			}
		}
		sink.Close()
		if last := s.rows[len(s.rows)-1].text; last != "" {
			t.Fatalf("seed %d: what comes next is written behind %q", seed, last)
		}
	}
}

// standsAbove reports whether s shows the messages, each on its own line, and
// at most one bar below.
func standsAbove(s *screen, said []string) bool {
	var lines []string
	line := ""
	for _, r := range s.rows {
		if line += r.text; !r.wrapped {
			lines, line = append(lines, line), ""
		}
	}
	bar := s.rows[len(s.rows)-1].text
	return slices.Equal(lines[:len(lines)-1], said) && lines[len(lines)-1] == bar && len(bar) < s.width &&
		s.row == len(s.rows)-1 && s.col == 0
}

// TestTruncatingTerminal narrows a window that cuts its lines: the bar shrinks
// with it and the messages above stay.
func TestTruncatingTerminal(t *testing.T) {
	width := 100
	s := newScreen(t, width)
	sink := NewTerminal(s, true, false, func() int { return width }, 9)
	sink.Note("a note")
	for i := 1; i <= 9; i++ {
		sink.Emit(at.Add(time.Duration(i)*time.Second), Step{Step: i, Loss: 3, TokensPerS: 1e5, StepMS: 9e6})
		if !standsAbove(s, []string{"a note"}) {
			t.Fatalf("width %d: the screen is\n%s", width, strings.Join(s.text(), "\n"))
		}
		width -= 9
		s.truncate(width)
	}
}

// TestWidths holds at every width that the bar fits, uses what there is, and
// shows a bar from 40 columns on.
func TestWidths(t *testing.T) {
	b := bar{total: 100000, valLoss: number(12.3456)}
	b.step(Step{Step: 12345, Loss: 2.3456, LR: 3e-4, TokensPerS: 123456, StepMS: 500, Generation: 3, WorldSize: 128})
	shown := 0
	for width := -1; width < 200; width++ {
		line := b.line(width)
		if len(line) > max(width, 0) {
			t.Errorf("width %d: %d columns: %q", width, len(line), line)
		}
		if width >= 39 && (!strings.HasPrefix(line, "[") || !strings.Contains(line, "12345/100000") || !strings.Contains(line, "loss 2.3456")) {
			t.Errorf("width %d: %q", width, line)
		}
		words := len(strings.Fields(line))
		if width > 38 && words < shown {
			t.Errorf("width %d: shows less than with a column less: %q", width, line)
		}
		shown = words
	}
	if line := b.line(199); !strings.HasSuffix(line, "12345/100000  loss 2.3456  12h10m left  123k tok/s  val 12.3456  gen 3  lr 0.0003  128 ranks") {
		t.Errorf("there is more to say than %q", line)
	}
}

// TestBarFills holds the bar's length against the share of steps done.
func TestBarFills(t *testing.T) {
	for step, want := range map[int]int{0: 0, 1: 0, 50: 20, 99: 39, 100: 40, 120: 40, -1: 0} {
		b := bar{total: 100}
		b.step(Step{Step: step})
		line := b.line(200)
		if got := strings.Count(line, "#"); got != want || got+strings.Count(line, "-")-strings.Count(line, " -1/") != 40 {
			t.Errorf("step %d: %q", step, line)
		}
	}
	b := bar{}
	b.step(Step{Step: 7, Loss: 1e300, TokensPerS: 5})
	if line := b.line(200); line != "step 7  loss 1e+300  5 tok/s  lr 0" {
		t.Errorf("without a total: %q", line)
	}
}

// TestRedraw holds that steps of a millisecond don't flood a terminal, and that
// the last one is always shown.
func TestRedraw(t *testing.T) {
	var out bytes.Buffer
	sink := NewTerminal(&out, true, false, func() int { return 80 }, 1000)
	for i := 1; i <= 1000; i++ {
		sink.Emit(at.Add(time.Duration(i)*time.Millisecond), Step{Step: i})
	}
	if n := strings.Count(out.String(), "\r"); n > 25 || n < 10 {
		t.Errorf("%d carriage returns for a second", n)
	}
	if !strings.Contains(out.String(), "1000/1000") {
		t.Error("the last step is not shown")
	}
}

// TestPace holds which steps a log shows, at several speeds.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		total, every int // every: milliseconds a step
		steps        []int
		want         string
	}{
		{200, 1, span(1, 200), "[1 10 20 30 40 50 60 70 80 90 100 110 120 130 140 150 160 170 180 190 200]"},
		{5, 1, span(1, 5), "[1 2 3 4 5]"},
		{1000, 4000, span(1, 12), "[1 4 7 10]"},                                    // at least each 10 s
		{0, 1000, span(1, 25), "[1 11 21]"},                                        // no end known: by time alone
		{100, 1, slices.Concat(span(1, 17), span(12, 21)), "[1 5 10 15 12 15 20]"}, // done again after a failure
		{100, 1, span(41, 52), "[41 45 50]"},                                       // resumed
	} {
		p := pace{total: c.total}
		var got []int
		for i, step := range c.steps {
			if p.due(at.Add(time.Duration(i*c.every)*time.Millisecond), step) {
				got = append(got, step)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d steps of %d ms: lines for %v, want %s", c.total, c.every, got, c.want)
		}
	}
}

func span(from, to int) []int {
	var out []int
	for i := from; i <= to; i++ {
		out = append(out, i)
	}
	return out
}

// TestNoColour holds that a log gets no escape sequence whatever is shown.
func TestNoColour(t *testing.T) {
	for _, c := range []struct{ tty, color bool }{{false, false}, {false, true}} {
		if text := toldAs(c.tty, c.color); strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("tty %v, color %v: %q", c.tty, c.color, text)
		}
	}
	if !strings.Contains(toldAs(true, true), "\x1b[31m") {
		t.Error("there is no colour where there should be")
	}
}

// TestUnknownEvents need no words on a terminal.
func TestUnknownEvents(t *testing.T) {
	var out bytes.Buffer
	sink := NewTerminal(&out, true, true, func() int { return 80 }, 1)
	for _, e := range []Event{Check{}, Bench{}, RankUp{Rank: 1}} {
		sink.Emit(at, e)
	}
	sink.Close()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}

var _ io.Writer = (*screen)(nil)

package observe

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
)

// torn fails when a write is not one whole line.
type torn struct {
	t     *testing.T
	lines []string
	busy  sync.Mutex
}

func (w *torn) Write(p []byte) (int, error) {
	if !w.busy.TryLock() {
		w.t.Error("two writes at once")
		return 0, errors.New("busy")
	}
	defer w.busy.Unlock()
	if bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
		w.t.Errorf("not one line: %q", p)
	}
	w.lines = append(w.lines, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// TestJSONLines emits from many goroutines: each line is an event and nothing
// is torn; what ranks print goes elsewhere.
func TestJSONLines(t *testing.T) {
	events, output := &torn{t: t}, &torn{t: t}
	sink := NewJSON(events, output)
	const goroutines, each = 8, 50
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				sink.Emit(at, Step{Step: g*each + i, Loss: math.NaN()})
				sink.Line(g, "stdout", fmt.Appendf(nil, "line %d", i))
			}
			sink.Note("n")
		})
	}
	wg.Wait()
	sink.Close()
	seen := map[int]bool{}
	for _, line := range events.lines {
		_, e, err := Parse([]byte(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seen[e.(Step).Step] = true
	}
	if len(events.lines) != goroutines*each || len(seen) != goroutines*each {
		t.Errorf("%d lines, %d different", len(events.lines), len(seen))
	}
	if want := goroutines * (each + 1); len(output.lines) != want || strings.Count(strings.Join(output.lines, "\n"), "[rank 3] line ") != each {
		t.Errorf("%d lines of output, want %d", len(output.lines), want)
	}
}

// gone is a reader that has left.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestReaderGone holds that a run goes on when nobody looks.
func TestReaderGone(t *testing.T) {
	for _, sink := range []Sink{NewJSON(gone{}, gone{}), NewTerminal(gone{}, true, true, func() int { return 80 }, 9)} {
		for _, e := range all {
			sink.Emit(at, e)
		}
		sink.Line(0, "stderr", []byte("x"))
		sink.Note("n")
		sink.Close()
	}
}

package observe

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// terminal draws a run for a person: a bar that stays on the last line of a
// terminal, or plain lines elsewhere.
//
// The cursor rests at the bar's first column. When the window becomes narrower
// and the terminal wraps the bar, the cursor stays at its first row, and all of
// it lies between there and the screen's end, which one sequence erases.
type terminal struct {
	mu         sync.Mutex
	out        io.Writer
	tty        bool
	color      bool
	width      func() int
	bar        bar
	shown      bool // a bar is on the last line
	pace       pace
	drawn      time.Time
	drawnWidth int
}

const (
	redraw     = 100 * time.Millisecond // the bar changes at most so often
	eraseBelow = "\x1b[J"               // from the cursor to the screen's end
)

// NewTerminal shows a run of total steps (0: not known) on out. On a tty it
// draws a progress bar no wider than width() columns, in colour when color is
// set; elsewhere it prints a line about every 5% of the steps and at least every
// 10 s, and width and color don't matter. It has no clock: time is the events'.
func NewTerminal(out io.Writer, tty, color bool, width func() int, total int) Sink {
	return &terminal{out: out, tty: tty, color: tty && color, width: width, bar: bar{total: total}, pace: pace{total: total}}
}

func (t *terminal) Emit(at time.Time, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case Step:
		t.step(at, e)
		return
	case Eval:
		t.bar.valLoss = &e.ValLoss
	case Resumed:
		t.bar.resumed(e.Step)
	case Done:
		t.settle()
	}
	t.print(t.describe(e))
}

// step moves the bar, or prints a line when it is time for one.
func (t *terminal) step(at time.Time, s Step) {
	t.bar.step(s)
	if !t.tty {
		if t.pace.due(at, s.Step) {
			t.write(t.bar.text() + "\n")
		}
		return
	}
	if s.Step == t.bar.total || at.Sub(t.drawn) >= redraw || at.Before(t.drawn) || t.width() != t.drawnWidth {
		t.drawn = at
		t.write(t.erase() + t.draw())
	}
}

func (t *terminal) Line(rank int, _ string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print([]string{fmt.Sprintf("[rank %d] %s", rank, clean(string(line), t.color))})
}

func (t *terminal) Note(msg string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(cleanLines(msg, t.color))
}

// Close leaves the last bar as a line of its own.
func (t *terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle()
}

// print writes whole lines above the bar, in one piece.
func (t *terminal) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	text := t.erase() + strings.Join(lines, "\n") + "\n"
	if t.tty && t.bar.begun {
		text += t.draw()
	}
	t.write(text)
}

// erase takes the bar away; the cursor is then at the start of an empty line.
func (t *terminal) erase() string {
	if !t.shown {
		return ""
	}
	t.shown = false
	return "\r" + eraseBelow
}

// draw puts the bar on the last line, one column short of the edge: some
// terminals wrap a full line.
func (t *terminal) draw() string {
	t.shown, t.drawnWidth = true, t.width()
	return t.bar.line(t.drawnWidth-1) + "\r"
}

// settle ends the bar: its newest state becomes a line like all others.
func (t *terminal) settle() {
	if t.shown {
		t.write(t.erase() + t.draw() + "\n")
	}
	t.shown, t.bar.begun = false, false
}

// write passes on what must not be torn apart. A terminal that has gone away
// must not stop the training.
func (t *terminal) write(text string) { _, _ = io.WriteString(t.out, text) }

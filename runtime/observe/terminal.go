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
type terminal struct {
	mu    sync.Mutex
	out   io.Writer
	tty   bool
	color bool
	width func() int
	bar   bar
	shown bool // a bar is on the last line
	next  int  // the next step that gets a plain line
	drawn time.Time
}

// redraw is how often the bar changes at the most.
const redraw = 100 * time.Millisecond

// NewTerminal shows a run of total steps on out. On a tty it draws a progress
// bar no wider than width() columns, in colour when color is set; elsewhere it
// prints a line about every 5% of the steps.
func NewTerminal(out io.Writer, tty, color bool, width func() int, total int) Sink {
	return &terminal{out: out, tty: tty, color: color, width: width, bar: bar{total: total}}
}

func (t *terminal) Emit(at time.Time, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := e.(type) {
	case Step:
		t.step(at, e)
	case RankUp:
		if e.Rank == 0 {
			t.print(fmt.Sprintf("world of %d on %s (%s)", e.WorldSize, e.Device, e.ISA))
		}
	case Eval:
		t.bar.valLoss = &e.ValLoss
		text := fmt.Sprintf("step %d: validation loss %.4f", e.Step, e.ValLoss)
		if e.Accuracy != nil {
			text += fmt.Sprintf(", %.2f%% of held-out questions right", 100**e.Accuracy)
		}
		t.print(text)
	case Snapshot:
		t.print(fmt.Sprintf("step %d: snapshot %s (training waited %.0f ms)", e.Step, e.Path, e.StallMS))
	case Failure:
		t.failure(e)
	case Recovered:
		t.print(t.paint(green, fmt.Sprintf("recovered at step %d after %.2f s, %d steps done again (generation %d)",
			e.Step, e.DownMS/1000, e.LostSteps, e.Generation)))
	case Resumed:
		t.bar.resumed(e.Step)
		t.print(fmt.Sprintf("continuing from step %d (%s)", e.Step, e.Path))
	case Member:
		t.print(fmt.Sprintf("%s %s: %s (world %d)", e.Host, e.Change, e.Reason, e.WorldSize))
	case Warning:
		t.print(t.paint(yellow, "warning: "+e.Message))
	case Done:
		t.done(e)
	}
}

// step moves the bar, or prints a line when it is time for one.
func (t *terminal) step(at time.Time, s Step) {
	t.bar.step(s)
	last := s.Step == t.bar.total
	if t.tty {
		if last || at.Sub(t.drawn) >= redraw || at.Before(t.drawn) {
			t.drawn = at
			t.erase()
			t.draw()
		}
		return
	}
	if s.Step >= t.next || last {
		t.next = s.Step + max(1, t.bar.total/20)
		fmt.Fprintf(t.out, "%s\n", t.bar.text())
	}
}

// failure leads with the cause; what surrounds it follows.
func (t *terminal) failure(f Failure) {
	lines := []string{t.paint(red, fmt.Sprintf("rank %d on %s failed: %s", f.Rank, f.Host, f.Cause))}
	for _, line := range f.LogTail {
		lines = append(lines, "    "+line)
	}
	if f.ErrorFile != "" {
		lines = append(lines, "    more in "+f.ErrorFile)
	}
	t.print(strings.Join(lines, "\n"))
}

func (t *terminal) done(d Done) {
	text := fmt.Sprintf("done: %d steps, loss %.4f", d.Step, d.Loss)
	if d.ValLoss != nil {
		text += fmt.Sprintf(", validation loss %.4f", *d.ValLoss)
	}
	text += fmt.Sprintf(", %.0f tokens/s", d.TokensPerS)
	if d.Restarts > 0 {
		text += fmt.Sprintf(", %d restarts", d.Restarts)
	}
	t.print(text + "\nparameters " + d.ParamsSHA256)
}

func (t *terminal) Line(rank int, _ string, line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.print(fmt.Sprintf("[rank %d] %s", rank, line))
}

// print writes whole lines above the bar.
func (t *terminal) print(text string) {
	t.erase()
	fmt.Fprintf(t.out, "%s\n", text)
	if t.tty && t.bar.begun {
		t.draw()
	}
}

// erase takes the bar away; the cursor is then at the start of an empty line.
func (t *terminal) erase() {
	if t.shown {
		fmt.Fprint(t.out, "\r\x1b[K")
		t.shown = false
	}
}

// draw puts the bar on the last line, one column short of the edge: a full line
// would wrap.
func (t *terminal) draw() {
	fmt.Fprint(t.out, t.bar.line(t.width()-1))
	t.shown = true
}

// Close leaves the last bar as a line of its own.
func (t *terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown {
		fmt.Fprintln(t.out)
		t.shown = false
	}
}

// The colours of SGR (ECMA-48).
const (
	red    = 31
	green  = 32
	yellow = 33
)

func (t *terminal) paint(color int, text string) string {
	if !t.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", color, text)
}

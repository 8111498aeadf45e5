package observe

import (
	"fmt"
	"strings"
	"time"
)

// bar is the state of a progress bar.
type bar struct {
	total   int // steps; 0: not known
	begun   bool
	last    Step
	valLoss *float64
	rate    float64 // tokens/s, smoothed
	stepMS  float64 // smoothed
}

// smoothing is the weight of the newest step in the averages.
const smoothing = 0.1

func (b *bar) step(s Step) {
	if !b.begun || s.Generation != b.last.Generation || !finite(b.rate) || !finite(b.stepMS) {
		b.rate, b.stepMS = s.TokensPerS, s.StepMS
	}
	b.begun, b.last = true, s
	b.rate += smoothing * (s.TokensPerS - b.rate)
	b.stepMS += smoothing * (s.StepMS - b.stepMS)
}

// resumed starts the bar at a step that an earlier run reached.
func (b *bar) resumed(step int) { b.last.Step = step }

// parts are the pieces of what there is to say of the newest step, in order of
// importance.
func (b *bar) parts() []string {
	s := b.last
	parts := []string{fmt.Sprintf("step %d", s.Step), "loss " + decimal(s.Loss)}
	if b.total > 0 {
		parts[0] = fmt.Sprintf("%d/%d", s.Step, b.total)
	}
	if left := float64(b.total-s.Step) * b.stepMS * float64(time.Millisecond); left > 0 && left < 1e18 {
		parts = append(parts, remaining(time.Duration(left))+" left")
	}
	parts = append(parts, short(b.rate)+" tok/s")
	if b.valLoss != nil {
		parts = append(parts, "val "+decimal(*b.valLoss))
	}
	if s.Generation > 0 {
		parts = append(parts, fmt.Sprintf("gen %d", s.Generation))
	}
	parts = append(parts, fmt.Sprintf("lr %.2g", s.LR))
	if s.WorldSize > 1 {
		parts = append(parts, count(s.WorldSize, "rank"))
	}
	return parts
}

// text is the newest step as a plain line.
func (b *bar) text() string { return strings.Join(b.parts(), "  ") }

// The bar itself has at least these columns, brackets included, and at most.
const (
	leastBar = 7
	mostBar  = 42
)

// line is the bar in at most width columns: as many of the pieces as fit beside
// it, closer together where not all do. Where not even the first two do, the bar
// gives way.
func (b *bar) line(width int) string {
	parts, gap := b.parts(), "  "
	if leastBar+len(gap)+len(b.text()) > width {
		gap = " "
	}
	text, n := "", 0
	for n < len(parts) && leastBar+len(text)+len(gap)+len(parts[n]) <= width {
		text += gap + parts[n]
		n++
	}
	if n < 2 || b.total <= 0 {
		text = strings.Join(parts, gap)
		return text[:max(0, min(width, len(text)))]
	}
	room := min(width-len(text), mostBar) - 2
	full := max(0, min(room, room*b.last.Step/b.total))
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", room-full) + "]" + text
}

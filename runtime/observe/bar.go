package observe

import (
	"fmt"
	"strings"
	"time"
)

// bar is the state of a progress bar.
type bar struct {
	total   int
	begun   bool
	last    Step
	valLoss *float64
	rate    float64 // tokens/s, smoothed
	stepMS  float64 // smoothed
}

// smoothing is the weight of the newest step in the averages.
const smoothing = 0.1

func (b *bar) step(s Step) {
	if !b.begun {
		b.rate, b.stepMS = s.TokensPerS, s.StepMS
	}
	b.begun, b.last = true, s
	b.rate += smoothing * (s.TokensPerS - b.rate)
	b.stepMS += smoothing * (s.StepMS - b.stepMS)
}

// resumed starts the bar at a step that an earlier run reached.
func (b *bar) resumed(step int) { b.last.Step = step }

// text is everything that there is to say of the newest step.
func (b *bar) text() string { return strings.Join(b.parts(), "  ") }

// parts are the pieces in order of importance.
func (b *bar) parts() []string {
	s := b.last
	parts := []string{fmt.Sprintf("%d/%d", s.Step, b.total), fmt.Sprintf("loss %.4f", s.Loss)}
	if left := b.total - s.Step; left > 0 {
		parts = append(parts, remaining(time.Duration(float64(left)*b.stepMS*float64(time.Millisecond)))+" left")
	}
	parts = append(parts, fmt.Sprintf("%s tok/s", short(b.rate)))
	if b.valLoss != nil {
		parts = append(parts, fmt.Sprintf("val %.4f", *b.valLoss))
	}
	parts = append(parts, fmt.Sprintf("lr %.2g", s.LR))
	if s.Generation > 0 {
		parts = append(parts, fmt.Sprintf("generation %d", s.Generation))
	}
	return parts
}

// line is the bar in at most width columns: the pieces that fit, the bar itself
// in what is left over.
func (b *bar) line(width int) string {
	text := ""
	for _, p := range b.parts() {
		if len(text)+2+len(p) > width {
			break
		}
		text += "  " + p
	}
	room := min(width-len(text)-2, 40)
	if room < 5 {
		return strings.TrimPrefix(text, "  ")
	}
	full := 0
	if b.total > 0 {
		full = min(room, room*b.last.Step/b.total)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", room-full) + "]" + text
}

// remaining is a duration in its two largest units.
func remaining(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	default:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
}

// short is a rate in three or four characters.
func short(x float64) string {
	switch {
	case x >= 1e6:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 1e3:
		return fmt.Sprintf("%.1fk", x/1e3)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

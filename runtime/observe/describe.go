package observe

import (
	"fmt"
	"strings"
)

// describe is an event in words, a line each; nothing for those that a person
// need not see. Foreign text in it is made safe to show.
func (t *terminal) describe(e Event) []string {
	switch e := e.(type) {
	case RankUp:
		if e.Rank == 0 {
			return []string{fmt.Sprintf("world of %d on %s (%s)", e.WorldSize, e.Device, e.ISA)}
		}
	case Eval:
		return []string{evaluation(e)}
	case Snapshot:
		return []string{fmt.Sprintf("step %d: snapshot %s (training waited %.0f ms)", e.Step, clean(e.Path, false), e.StallMS)}
	case Failure:
		return t.failure(e)
	case Recovered:
		return []string{t.paint(green, fmt.Sprintf("recovered (%s) at step %d after %.2f s, %s done again (generation %d)",
			clean(e.Mode, false), e.Step, e.DownMS/1000, count(e.LostSteps, "step"), e.Generation))}
	case Resumed:
		return []string{fmt.Sprintf("continuing from step %d (%s)", e.Step, clean(e.Path, false))}
	case Member:
		return []string{clean(fmt.Sprintf("%s %s: %s (world %d)", e.Host, e.Change, e.Reason, e.WorldSize), false)}
	case Warning:
		lines := cleanLines("warning: "+e.Message, false)
		lines[0] = t.paint(yellow, lines[0])
		return lines
	case Done:
		return []string{done(e), "parameters " + clean(e.ParamsSHA256, false)}
	}
	return nil
}

func evaluation(e Eval) string {
	text := fmt.Sprintf("step %d: validation loss %s", e.Step, decimal(e.ValLoss))
	if e.Accuracy != nil {
		text += fmt.Sprintf(", %.2f%% of held-out questions right", 100**e.Accuracy)
	}
	return text
}

// failure leads with the cause; what surrounds it follows.
func (t *terminal) failure(f Failure) []string {
	who := fmt.Sprintf("rank %d", f.Rank)
	if f.Host != "" {
		who += " on " + f.Host
	}
	what := "failed"
	if f.Signal != "" {
		what = "died"
	}
	lines := cleanLines(fmt.Sprintf("%s %s: %s", who, what, f.Cause), false)
	lines[0] = t.paint(red, lines[0])
	for i, line := range lines[1:] {
		lines[1+i] = "    " + line
	}
	if len(f.LogTail) > 0 {
		lines = append(lines, "    its last lines:")
	}
	for _, line := range f.LogTail {
		lines = append(lines, strings.TrimRight("    | "+clean(line, t.color), " "))
	}
	for _, more := range [][2]string{{"its last collective", f.LastOperation}, {"those before", f.FlightFile}, {"error file", f.ErrorFile}} {
		if more[1] != "" {
			lines = append(lines, "    "+more[0]+": "+clean(more[1], false))
		}
	}
	return lines
}

func done(d Done) string {
	text := fmt.Sprintf("done: %s, loss %s", count(d.Step, "step"), decimal(d.Loss))
	if d.ValLoss != nil {
		text += fmt.Sprintf(", validation loss %s", decimal(*d.ValLoss))
	}
	text += fmt.Sprintf(", %.0f tokens/s", d.TokensPerS)
	if d.Restarts > 0 {
		text += ", " + count(d.Restarts, "restart")
	}
	return text
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

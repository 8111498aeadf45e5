package observe

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
)

var (
	// sequence is an escape sequence of ECMA-48: a control sequence, a string
	// such as a window's title, or a short one; or what is left of a cut one.
	sequence = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)`)
	// colour is the one kind that moves nothing: select graphic rendition.
	colour = regexp.MustCompile(`^\x1b\[[0-9;:]*m$`)
)

// clean makes one line of foreign text safe to show: of a line that was drawn
// over and over with carriage returns the last state stays, and nothing in it
// moves the cursor. Colours stay when color is set, and end with the line.
func clean(line string, color bool) string {
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	painted := false
	line = sequence.ReplaceAllStringFunc(line, func(s string) string {
		if !color || !colour.MatchString(s) {
			return ""
		}
		painted = true
		return s
	})
	line = strings.Map(func(r rune) rune { // what is no UTF-8 becomes U+FFFD
		if unicode.IsControl(r) && r != '\t' && r != '\x1b' {
			return -1
		}
		return r
	}, line)
	if painted {
		line += "\x1b[0m"
	}
	return line
}

// cleanLines is clean for each line of a text.
func cleanLines(text string, color bool) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = clean(line, color)
	}
	return lines
}

// remaining is a duration in its two largest units.
func remaining(d time.Duration) string {
	s := int64(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	}
}

// short is a rate in three or four characters.
func short(x float64) string {
	switch {
	case !finite(x):
		return "?"
	case x >= 999.5e3:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 9950:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 999.5:
		return fmt.Sprintf("%.1fk", x/1e3)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

// decimal is a loss: four places, as long as that many digits mean something.
func decimal(x float64) string {
	if finite(x) && math.Abs(x) >= 1e6 {
		return fmt.Sprintf("%.4g", x)
	}
	return fmt.Sprintf("%.4f", x)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// count is n things, in the plural unless there is one.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

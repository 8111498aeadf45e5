package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// place is where something stands: in the file (flag 0), or in the flag-th
// --set, which has no lines.
type place struct {
	file      string
	flag      int
	line, col int // from 1; columns count characters
}

// Problem is one fault of a job file or of a --set.
type Problem struct {
	File    string // the path as given, or "--set KEY=VALUE"
	Line    int    // from 1; 0: the file as a whole, or a --set
	Col     int    // in characters, from 1
	Key     string // "table.key"; empty when the fault is not one key's
	Message string
	Hint    string // what to do about it; may be empty

	flag int
}

// String is the problem's line: "file:line:col: key: message (hint)".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(printable(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	if p.Key != "" {
		b.WriteString(": " + printable(p.Key))
	}
	b.WriteString(": " + printable(p.Message))
	if p.Hint != "" {
		b.WriteString(" (" + printable(p.Hint) + ")")
	}
	return b.String()
}

// longestPart keeps a line readable that quotes a hostile file.
const longestPart = 300

// printable keeps what a file or flag holds on one line, and out of the
// terminal's control: such characters are escaped as in Go.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if runes := []rune(s); len(runes) > longestPart {
		s = string(runes[:longestPart]) + "..."
	}
	if !strings.ContainsFunc(s, isUnprintable) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if isUnprintable(c) {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

func isUnprintable(c rune) bool { return !unicode.IsPrint(c) }

// Problems is the error of Load and Parse: everything that is wrong, sorted by
// place, those of the file before those of the flags. It is never empty.
type Problems []Problem

// mostLines is how many problems Error spells out: more is a wrong file.
const mostLines = 50

// Error is one line for each problem, up to 50.
func (p Problems) Error() string {
	var lines []string
	for i, problem := range p {
		if i == mostLines {
			lines = append(lines, fmt.Sprintf("and %d more problems", len(p)-mostLines))
			break
		}
		lines = append(lines, problem.String())
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(at place, key, message, hint string) {
	*p = append(*p, Problem{File: at.file, Line: at.line, Col: at.col, Key: key, Message: message, Hint: hint, flag: at.flag})
}

// orNil is the sorted problems as an error, or nil when there are none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.flag, b.flag), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return p
}

// fileProblem is the one problem of a file that could not be looked into.
func fileProblem(path, message, hint string) Problems {
	return Problems{{File: path, Message: message, Hint: hint}}
}

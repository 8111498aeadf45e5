package observe

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// screen is a terminal of that many columns and without end below: it wraps at
// its edge, knows CR, LF, the two sequences that erase, and colours. Anything
// else in its input fails the test.
type screen struct {
	t     *testing.T
	width int
	rows  []row
	row   int // of the cursor
	col   int // of the cursor; width: a wrap is due
}

type row struct {
	text    string
	wrapped bool // goes on in the next one
}

func newScreen(t *testing.T, width int) *screen {
	return &screen{t: t, width: width, rows: []row{{}}}
}

func (s *screen) Write(p []byte) (int, error) {
	if !utf8.Valid(p) || len(p) == 0 {
		s.t.Errorf("%q is written", p)
	}
	for text := string(p); len(text) > 0; {
		text = text[s.take(text):]
	}
	return len(p), nil
}

// take interprets the start of text and returns its length.
func (s *screen) take(text string) int {
	switch {
	case strings.HasPrefix(text, "\x1b[J"):
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = row{text: s.rows[s.row].text[:s.col]}
		return 3
	case text[0] == '\x1b':
		m := colour.FindString(text[:strings.IndexByte(text, 'm')+1])
		if m == "" {
			s.t.Fatalf("unknown sequence in %q", text)
		}
		return len(m)
	case text[0] == '\r':
		s.col = 0
	case text[0] == '\n':
		s.down()
	case text[0] < ' ' || text[0] > '~':
		s.t.Fatalf("%q is not for a terminal", text[:1])
	default:
		s.put(text[:1])
	}
	return 1
}

// down moves the cursor to the start of the next row, as a tty does for LF.
func (s *screen) down() {
	s.row, s.col = s.row+1, 0
	if s.row == len(s.rows) {
		s.rows = append(s.rows, row{})
	}
}

func (s *screen) put(c string) {
	if s.col == s.width {
		s.rows[s.row].wrapped = true
		s.down()
	}
	r := &s.rows[s.row]
	if s.col < len(r.text) {
		r.text = r.text[:s.col] + c + r.text[s.col+1:]
	} else {
		r.text += c
	}
	s.col++
}

// text is all rows, wrapped ones too.
func (s *screen) text() []string {
	var out []string
	for _, r := range s.rows {
		out = append(out, r.text)
	}
	return out
}

// reflow changes the width as most terminals do: lines are wrapped anew and the
// cursor stays at its character.
func (s *screen) reflow(width int) {
	var rows []row
	cursor, at := [2]int{}, 0 // at counts the columns of the line so far
	line, mark := "", -1
	for i, r := range s.rows {
		if i == s.row {
			mark = at + s.col
		}
		line, at = line+r.text, at+len(r.text)
		if r.wrapped {
			continue
		}
		first := len(rows)
		for chunk := range slices.Chunk([]byte(line), width) {
			rows = append(rows, row{string(chunk), true})
		}
		if line == "" {
			rows = append(rows, row{})
		}
		rows[len(rows)-1].wrapped = false
		if mark >= 0 {
			cursor = [2]int{min(first+mark/width, len(rows)-1), mark % width}
		}
		line, at, mark = "", 0, -1
	}
	s.width, s.rows, s.row, s.col = width, rows, cursor[0], cursor[1]
}

// truncate changes the width as xterm does: what is beyond the edge is lost.
func (s *screen) truncate(width int) {
	s.width, s.col = width, min(s.col, width-1)
	for i := range s.rows {
		s.rows[i].text = s.rows[i].text[:min(width, len(s.rows[i].text))]
	}
}

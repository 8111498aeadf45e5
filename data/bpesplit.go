package data

import (
	"sync"
	"unicode/utf8"
)

// class is what GPT-2's pattern asks of a character.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

// classTable has the class of each code point. It is a table of our own, since
// Go's tables change with its version, and tokens must not.
var classTable = sync.OnceValue(func() []class {
	table := make([]class, utf8.MaxRune+1)
	for _, of := range []struct {
		class class
		runs  [][2]rune
	}{{letter, letterRuns}, {number, numberRuns}, {space, spaceRuns}} {
		for _, run := range of.runs {
			for c := run[0]; c <= run[1]; c++ {
				table[c] = of.class
			}
		}
	}
	return table
})

// splitter cuts text into the pieces that GPT-2's pattern matches, one after
// the other and without gaps:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// No token crosses the border of a piece. A byte that is not UTF-8 counts as a
// character that is neither letter nor number nor space.
type splitter []class

// piece is the length in bytes of the first piece of text, which must not be empty.
func (s splitter) piece(text string) int {
	if n := contraction(text); n > 0 {
		return n
	}
	kind, size := s.at(text, 0)
	if text[0] == ' ' && len(text) > 1 {
		if next, more := s.at(text, 1); next != space {
			kind, size = next, 1+more
		}
	}
	if kind == space {
		return s.spaces(text)
	}
	for size < len(text) {
		next, more := s.at(text, size)
		if next != kind {
			break
		}
		size += more
	}
	return size
}

// at is the class of the character that begins at a byte of text, and its length.
func (s splitter) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return s[b], 1
	}
	c, size := utf8.DecodeRuneInString(text[i:])
	return s[c], size
}

// spaces is the length of the piece when text begins with white space that is
// no single blank before a word: all of it at the end of the text, else all but
// its last character, which may belong to the next piece.
func (s splitter) spaces(text string) int {
	end, last := 0, 0
	for end < len(text) {
		kind, size := s.at(text, end)
		if kind != space {
			if last == 0 {
				return end
			}
			return last
		}
		last = end
		end += size
	}
	return end
}

// contraction is the length of the English ending that text begins with, or 0.
func contraction(text string) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	switch text[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) > 2 {
		switch text[1:3] {
		case "re", "ve", "ll":
			return 3
		}
	}
	return 0
}

package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CharTokenizer has one token for each distinct character of its text, in the
// order of their code points.
type CharTokenizer struct {
	symbols []rune
	tokens  map[rune]int32
}

// NewCharTokenizer makes the tokenizer of all characters of text, which must be
// valid UTF-8 and not empty.
func NewCharTokenizer(text string) *CharTokenizer {
	seen := make(map[rune]bool)
	for _, c := range text {
		seen[c] = true
	}
	symbols := make([]rune, 0, len(seen))
	for c := range seen {
		symbols = append(symbols, c)
	}
	slices.Sort(symbols)
	return newChars(symbols)
}

func newChars(symbols []rune) *CharTokenizer {
	t := &CharTokenizer{symbols: symbols, tokens: make(map[rune]int32, len(symbols))}
	for i, c := range symbols {
		t.tokens[c] = int32(i)
	}
	return t
}

// loadChars checks what a file claims to be a tokenizer's symbols.
func loadChars(symbols string) (*CharTokenizer, error) {
	if symbols == "" {
		return nil, errors.New("a char tokenizer without symbols")
	}
	if !utf8.ValidString(symbols) {
		return nil, errors.New("symbols are not UTF-8")
	}
	runes := []rune(symbols)
	for i := 1; i < len(runes); i++ {
		if runes[i] <= runes[i-1] {
			return nil, fmt.Errorf("symbol %s is repeated or out of order", quoteRune(runes[i]))
		}
	}
	return newChars(runes), nil
}

// Name is "char".
func (t *CharTokenizer) Name() string { return "char" }

// VocabSize is the number of distinct characters.
func (t *CharTokenizer) VocabSize() int { return len(t.symbols) }

// Encode is one token a character; see Tokenizer.
func (t *CharTokenizer) Encode(text string) ([]int32, error) {
	tokens := make([]int32, 0, len(text))
	for at, c := range text {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[at:]); size == 1 {
				return nil, faultf("", "", "byte 0x%02x at position %d is not UTF-8", text[at], len(tokens))
			}
		}
		token, known := t.tokens[c]
		if !known {
			return nil, t.unknown(c, len(tokens))
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// unknown names the character, and offers its other case when that is known.
func (t *CharTokenizer) unknown(c rune, position int) *Error {
	hint := ""
	for _, other := range []rune{unicode.ToLower(c), unicode.ToUpper(c)} {
		if _, known := t.tokens[other]; known {
			hint = quoteRune(other) + " is"
		}
	}
	return faultf("", hint, "character %s at position %d is not in the tokenizer's %d symbols", quoteRune(c), position, len(t.symbols))
}

// Decode is the inverse of Encode; see Tokenizer.
func (t *CharTokenizer) Decode(tokens []int32) string {
	var b strings.Builder
	for _, token := range tokens {
		if token < 0 || int(token) >= len(t.symbols) {
			b.WriteRune(utf8.RuneError)
			continue
		}
		b.WriteRune(t.symbols[token])
	}
	return b.String()
}

// Marshal is the JSON form; see Tokenizer.
func (t *CharTokenizer) Marshal() ([]byte, error) {
	symbols := string(t.symbols)
	return json.Marshal(savedTokenizer{Kind: "char", Symbols: &symbols})
}

func quoteRune(c rune) string { return strconv.QuoteRune(c) }

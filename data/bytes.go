package data

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// ByteTokenizer has the 256 byte values as tokens: it reads any file, text or not.
type ByteTokenizer struct{}

// Name is "byte".
func (ByteTokenizer) Name() string { return "byte" }

// VocabSize is 256.
func (ByteTokenizer) VocabSize() int { return 256 }

// Encode is one token a byte; it never fails.
func (ByteTokenizer) Encode(text string) ([]int32, error) {
	tokens := make([]int32, len(text))
	for i := range len(text) {
		tokens[i] = int32(text[i])
	}
	return tokens, nil
}

// Decode is the inverse of Encode: the result is UTF-8 only if the bytes are.
func (ByteTokenizer) Decode(tokens []int32) string {
	var b strings.Builder
	for _, token := range tokens {
		if token < 0 || token > 255 {
			b.WriteRune(utf8.RuneError)
			continue
		}
		b.WriteByte(byte(token))
	}
	return b.String()
}

// Marshal is the JSON form; see Tokenizer.
func (ByteTokenizer) Marshal() ([]byte, error) {
	return json.Marshal(savedTokenizer{Kind: "byte"})
}

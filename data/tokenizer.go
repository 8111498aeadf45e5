package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Tokenizer maps text to symbols and back. Tokenizers never change: safe for
// concurrent use.
type Tokenizer interface {
	// Name is "char", "byte" or "bpe".
	Name() string
	// VocabSize is the number of symbols; tokens are 0 to VocabSize-1.
	VocabSize() int
	// Encode gives the tokens of text. An unknown character is an *Error that
	// names it and its position, counted in characters from 0.
	Encode(text string) ([]int32, error)
	// Decode is the text of tokens; what is outside the vocabulary reads as U+FFFD.
	Decode(tokens []int32) string
	// Marshal is the JSON form that LoadTokenizer reads back.
	Marshal() ([]byte, error)
}

// savedTokenizer is the JSON form of every tokenizer.
type savedTokenizer struct {
	Kind    string  `json:"kind"`
	Symbols *string `json:"symbols,omitempty"` // char: each character once, in the order of the tokens
}

// LoadTokenizer reads what Marshal wrote, and any tokenizer.json that works as
// GPT-2's.
func LoadTokenizer(text []byte) (Tokenizer, error) {
	if isHubFile(text) {
		t, err := loadHubFile(text)
		if err != nil {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		return t, nil
	}
	var saved savedTokenizer
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&saved); err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read tokenizer: text after the JSON object")
	}
	switch {
	case saved.Kind == "byte" && saved.Symbols == nil:
		return ByteTokenizer{}, nil
	case saved.Kind == "char" && saved.Symbols != nil:
		t, err := loadChars(*saved.Symbols)
		if err != nil {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		return t, nil
	}
	return nil, fmt.Errorf("read tokenizer: kind %q with symbols %t is neither a char nor a byte tokenizer", saved.Kind, saved.Symbols != nil)
}

package data

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Config says what to open. The fields that the source does not use are ignored.
type Config struct {
	Source    string // "text", "adder" or "sort"
	BlockSize int    // T; for adder and sort 0, or the size that the task has anyway
	Seed      uint64

	// text
	Path      string  // a file, a folder or a glob; relative to the working directory
	Tokenizer string  // "char", "byte", or a path as of OpenTokenizer
	Split     float64 // the share of tokens for training, in (0, 1]; 1 keeps nothing for validation
	Stride    int     // tokens between the starts of training windows; 0: BlockSize

	Digits  int // adder: of each number
	Length  int // sort: of the sequence
	Symbols int // sort: how many different ones
}

// Set is an open source. It holds no file or goroutine: nothing to close.
type Set struct {
	Dataset
	Tokenizer Tokenizer // nil for adder and sort, whose tokens are digits
	digest    string
}

// Digest is the SHA-256 (hex) of the content and of all that cuts it into
// windows, but for the seed and the path: two sets with the same digest and
// seed give the same windows.
func (s *Set) Digest() string { return s.digest }

// Open reads the source into memory. Faults of the data or the configuration
// are an *Error.
func Open(c Config) (*Set, error) {
	switch c.Source {
	case "text":
		return openText(c)
	case "adder":
		task, err := newAdder(c.Digits)
		if err != nil {
			return nil, err
		}
		return openTask(c, task, c.Digits)
	case "sort":
		task, err := newSorter(c.Length, c.Symbols, c.Seed)
		if err != nil {
			return nil, err
		}
		return openTask(c, task, c.Length, c.Symbols)
	}
	return nil, faultf("", "", "unknown data source %q: it is text, adder or sort", c.Source)
}

func openTask(c Config, task Dataset, parameters ...int) (*Set, error) {
	if c.BlockSize != 0 && c.BlockSize != task.BlockSize() {
		return nil, faultf("", "leave model.block_size out", "the sequences of %s are %d long, not %d", task.Name(), task.BlockSize(), c.BlockSize)
	}
	return &Set{Dataset: task, digest: digest("", task.Name(), parameters)}, nil
}

func openText(c Config) (*Set, error) {
	if err := checkText(c); err != nil {
		return nil, err
	}
	content, err := readText(c.Path, c.Tokenizer != "byte")
	if err != nil {
		return nil, err
	}
	tokenizer, err := openTokenizer(c.Tokenizer, content)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenizer.Encode(content)
	if err != nil {
		return nil, inFile(c.Path, err)
	}
	if oneSymbol(tokens) {
		return nil, faultf(c.Path, "", "has only one symbol, %q: there is nothing to learn", tokenizer.Decode(tokens[:1]))
	}
	windows, err := newText(tokens, tokenizer.VocabSize(), c)
	if err != nil {
		return nil, err
	}
	vocabulary, err := tokenizer.Marshal()
	if err != nil {
		return nil, fmt.Errorf("describe the tokenizer: %w", err)
	}
	how := []any{string(vocabulary), c.Split, windows.block, windows.stride}
	return &Set{Dataset: windows, Tokenizer: tokenizer, digest: digest(content, "text", how)}, nil
}

func checkText(c Config) error {
	switch {
	case c.BlockSize < 1:
		return faultf("", "", "a text needs a block size of at least 1, not %d", c.BlockSize)
	case !(c.Split > 0 && c.Split <= 1):
		return faultf("", "", "the training share must be above 0 and at most 1, not %v", c.Split)
	case c.Stride < 0:
		return faultf("", "", "the stride must not be negative, it is %d", c.Stride)
	}
	return nil
}

func openTokenizer(name, content string) (Tokenizer, error) {
	switch name {
	case "char":
		return NewCharTokenizer(content), nil
	case "byte":
		return ByteTokenizer{}, nil
	}
	return OpenTokenizer(name)
}

// inFile adds the path to an encoder's fault.
func inFile(path string, err error) error {
	var fault *Error
	if !errors.As(err, &fault) {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return &Error{Path: path, Message: fault.Message, Hint: fault.Hint, Err: fault.Err}
}

func oneSymbol(tokens []int32) bool {
	for _, token := range tokens {
		if token != tokens[0] {
			return false
		}
	}
	return true
}

func digest(content, source string, how any) string {
	h := sha256.New()
	// Numbers and strings always marshal.
	header, _ := json.Marshal([]any{source, how})
	h.Write(header)
	h.Write([]byte{0})
	h.Write([]byte(content))
	return hex.EncodeToString(h.Sum(nil))
}

package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The names of a tokenizer's files in its folder.
const (
	hubName    = "tokenizer.json"
	vocabName  = "vocab.json"
	mergesName = "merges.txt"
)

// vocabPairs are the names that a vocabulary and its merges come under: those
// of today, and OpenAI's own. A longer name may end in them, as gpt2-vocab.json.
var vocabPairs = [][2]string{{vocabName, mergesName}, {"encoder.json", "vocab.bpe"}}

// OpenTokenizer reads a saved tokenizer: a folder of tokenizer.json, or of
// vocab.json and merges.txt, or one of these files, or what Marshal wrote.
// Faults are an *Error.
func OpenTokenizer(path string) (Tokenizer, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openFolder(path)
	}
	for _, names := range vocabPairs {
		if prefix, is := strings.CutSuffix(path, names[0]); is {
			return openVocab(path, prefix+names[1])
		}
		if prefix, is := strings.CutSuffix(path, names[1]); is {
			return openVocab(prefix+names[0], path)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	tokenizer, err := LoadTokenizer(text)
	if err != nil {
		return nil, &Error{Path: path, Message: err.Error(), Err: err}
	}
	return tokenizer, nil
}

func openFolder(dir string) (Tokenizer, error) {
	if isFile(filepath.Join(dir, hubName)) {
		return OpenTokenizer(filepath.Join(dir, hubName))
	}
	for _, names := range vocabPairs {
		if isFile(filepath.Join(dir, names[0])) {
			return openVocab(filepath.Join(dir, names[0]), filepath.Join(dir, names[1]))
		}
	}
	return nil, faultf(dir, "", "the folder holds no tokenizer: neither %s nor %s and %s", hubName, vocabName, mergesName)
}

// openVocab reads a vocabulary and the merges that belong to it.
func openVocab(vocabPath, mergesPath string) (Tokenizer, error) {
	vocab, err := os.ReadFile(vocabPath)
	if err != nil {
		return nil, unreadable(vocabPath, err)
	}
	merges, err := os.ReadFile(mergesPath)
	if err != nil {
		return nil, unreadable(mergesPath, err)
	}
	p := bpeParts{guess: true}
	if p.names, err = parseVocab(vocab); err != nil {
		return nil, &Error{Path: vocabPath, Message: "read vocabulary: " + err.Error(), Err: err}
	}
	if p.merges, err = parseMerges(merges); err != nil {
		return nil, &Error{Path: mergesPath, Message: "read merges: " + err.Error(), Err: err}
	}
	t, err := newBPE(p)
	if err != nil {
		return nil, &Error{Path: mergesPath, Message: "does not fit " + vocabPath + ": " + err.Error(), Err: err}
	}
	return t, nil
}

// parseVocab reads vocab.json: an object from names to numbers.
func parseVocab(text []byte) ([]string, error) {
	var v vocabulary
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return v.names()
}

// parseMerges reads merges.txt: "a b" a line, after a line of the version that
// may be there.
func parseMerges(text []byte) ([][2]string, error) {
	var merges [][2]string
	for i, line := range strings.Split(strings.TrimRight(string(text), "\r\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 && (line == "" || strings.HasPrefix(line, "#version")) {
			continue
		}
		m, err := splitMerge(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		merges = append(merges, m)
	}
	return merges, nil
}

// VocabJSON is vocab.json: the tokens and their numbers.
func (t *BPE) VocabJSON() ([]byte, error) { return plainJSON(vocabularyOf(t.names)) }

// MergesTXT is merges.txt: the merges, one a line, the first learnt first.
func (t *BPE) MergesTXT() []byte {
	var b bytes.Buffer
	b.WriteString("#version: 0.2\n")
	for _, p := range t.order {
		b.WriteString(t.names[p.left] + " " + t.names[p.right] + "\n")
	}
	return b.Bytes()
}

// Save writes tokenizer.json, vocab.json and merges.txt into a folder, which it
// makes. It overwrites nothing: a file that is there already is an *Error.
func (t *BPE) Save(dir string) error {
	hub, err := t.Marshal()
	if err != nil {
		return err
	}
	vocab, err := t.VocabJSON()
	if err != nil {
		return fmt.Errorf("write %s: %w", vocabName, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return unwritable(dir, err)
	}
	for _, name := range []string{vocabName, mergesName, hubName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return there(filepath.Join(dir, name)) // before one of them is written
		}
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{vocabName, append(vocab, '\n')}, {mergesName, t.MergesTXT()}, {hubName, append(hub, '\n')}} {
		if err := writeNew(filepath.Join(dir, file.name), file.content); err != nil {
			return err
		}
	}
	return nil
}

func writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return there(path)
	}
	if err != nil {
		return unwritable(path, err)
	}
	_, err = file.Write(content)
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return unwritable(path, err)
	}
	return nil
}

func there(path string) *Error {
	return faultf(path, "remove it, or name another folder", "is there already")
}

func unwritable(path string, err error) *Error {
	fault := unreadable(path, err)
	fault.Message = strings.Replace(fault.Message, "read", "written", 1)
	return fault
}

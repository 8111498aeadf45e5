package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxFile is the largest job file; real ones have a few kilobytes.
const maxFile = 128 << 10

// Load reads the job file at path, then sets, each "table.key=value" with a
// TOML value, which win over the file. Whatever the user can have got wrong is
// a Problems error.
func Load(path string, sets []string) (*Job, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text, sets)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fileProblem(path, "is a folder, not a job file", "name a .toml file in it")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, unreadable(path, err)
	}
	return text, nil
}

func unreadable(path string, err error) Problems {
	var wrapped *fs.PathError
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fileProblem(path, "cannot be read: "+err.Error(), "")
}

// Parse is Load for a text already read; name stands for its path in problems,
// and names the job unless the text does.
func Parse(name string, text []byte, sets []string) (*Job, error) {
	if problems := checkText(name, text); problems != nil {
		return nil, problems
	}
	var found Problems
	documents := []*document{scan(name, 0, bytes.TrimPrefix(text, []byte("\ufeff")), &found)}
	for i, set := range sets {
		documents = append(documents, scanSet(i+1, set, &found))
	}
	r := newReading(name, documents, &found)
	r.read()
	r.settle()
	r.resolve()
	r.check()
	if err := found.orNil(); err != nil {
		return nil, err
	}
	return r.job, nil
}

// checkText reports what makes a text no job file at all.
func checkText(name string, text []byte) Problems {
	if len(text) > maxFile {
		return fileProblem(name, fmt.Sprintf("is larger than %d bytes: this is no job file", maxFile), "")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return fileProblem(name, "is empty", "a job needs at least [data] with a path")
	}
	for at := 0; at < len(text); {
		c, size := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && size == 1 {
			var found Problems
			d := newDocument(name, 0, text, &found)
			found.add(d.placeAt(at), "", fmt.Sprintf("byte 0x%02x is not UTF-8", text[at]), "save the file as UTF-8")
			return found
		}
		at += size
	}
	return nil
}

// scanSet reads one --set, which is one line of TOML.
func scanSet(flag int, set string, found *Problems) *document {
	file := "--set " + set
	at := place{file: file, flag: flag}
	d := &document{file: file, flag: flag, found: found, broken: true}
	name, val, assigned := strings.Cut(set, "=")
	switch {
	case !utf8.ValidString(set):
		found.add(at, "", "is not UTF-8", "")
	case !assigned || strings.TrimSpace(name) == "":
		found.add(at, "", "is not of the form table.key=value", "")
	case strings.TrimSpace(val) == "":
		found.add(at, strings.TrimSpace(name), "has no value", `an empty string is ""`)
	case strings.ContainsAny(set, "\n\r"):
		found.add(at, "", "must be one line", "")
	default:
		return scan(file, flag, []byte(quoted(name, val)), found)
	}
	return d
}

// quoted is a --set as TOML. A shell takes quotes away, so text may come without.
func quoted(name, val string) string {
	k, bare := findKey(strings.TrimSpace(name)), strings.TrimSpace(val)
	isText := k != nil && (k.kind.name == "string" || k.kind.name == "duration" && !isNumber(bare))
	if !isText || strings.ContainsAny(bare[:1], `"'[{`) || strings.Contains(bare, "'") {
		return name + "=" + val
	}
	return name + "='" + bare + "'"
}

// isNumber tells whether text is one, which durations give a meaning of its own.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

package data

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// textSuffixes are the files that a folder's walk takes; a glob takes any.
var textSuffixes = []string{".txt", ".md"}

// readText is the bytes of all files that path names, one after the other as
// they are. path is a file, a folder (its .txt and .md files, those of
// sub-folders too, hidden ones left out), or a glob as of filepath.Glob (its
// files, whatever their names). The order is that of the paths' bytes.
func readText(path string, mustBeUTF8 bool) (string, error) {
	files, err := listFiles(path)
	if err != nil {
		return "", err
	}
	var all bytes.Buffer
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", unreadable(file, err)
		}
		if mustBeUTF8 {
			if err := checkUTF8(file, content); err != nil {
				return "", err
			}
		}
		all.Write(content)
	}
	if all.Len() == 0 {
		return "", faultf(path, "", "holds no text: it is empty")
	}
	return all.String(), nil
}

func listFiles(path string) ([]string, error) {
	if path == "" {
		return nil, faultf("", "set data.path", "source \"text\" needs a path")
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return listFolder(path)
	case err == nil && !info.Mode().IsRegular():
		return nil, faultf(path, "", "is neither a file nor a folder")
	case err == nil:
		return []string{path}, nil
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?["):
		return listGlob(path)
	}
	return nil, unreadable(path, err)
}

func listFolder(root string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(path, err)
		}
		if path != root && strings.HasPrefix(entry.Name(), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if slices.Contains(textSuffixes, strings.ToLower(filepath.Ext(path))) && isFile(path) {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, faultf(root, "for files of other names give a pattern, such as "+filepath.Join(root, "*.csv"),
			"the folder holds no %s file", strings.Join(textSuffixes, " or "))
	}
	slices.Sort(files)
	return files, nil
}

func listGlob(pattern string) ([]string, error) {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, &Error{Path: pattern, Message: "the pattern is malformed", Err: err}
	}
	files := slices.DeleteFunc(matches, func(path string) bool { return !isFile(path) })
	if len(files) == 0 {
		return nil, faultf(pattern, "", "no file matches the pattern")
	}
	slices.Sort(files)
	return files, nil
}

// isFile follows links.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// unreadable drops the operation and path that the system's error repeats.
func unreadable(path string, err error) *Error {
	reason := err
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		reason = pathError.Err
	}
	return &Error{Path: path, Message: "cannot be read: " + reason.Error(), Err: err}
}

func checkUTF8(path string, content []byte) error {
	if utf8.Valid(content) {
		return nil
	}
	for at := 0; at < len(content); {
		c, size := utf8.DecodeRune(content[at:])
		if c == utf8.RuneError && size == 1 {
			line := 1 + bytes.Count(content[:at], []byte("\n"))
			return faultf(path, `save it as UTF-8, or use tokenizer = "byte"`, "byte %d (line %d) is not UTF-8: 0x%02x", at, line, content[at])
		}
		at += size
	}
	return nil
}

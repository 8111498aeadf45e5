package jobs

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// findKey is the key of that full name, or nil.
func findKey(name string) *Key {
	for i := range keyTable {
		if keyTable[i].Name == name {
			return &keyTable[i]
		}
	}
	return nil
}

// tableNames is the names of all tables, in the order of their keys.
func tableNames() []string {
	var names []string
	for _, k := range keyTable {
		if table, _ := splitKey(k.Name); table != "" && !slices.Contains(names, table) {
			names = append(names, table)
		}
	}
	return names
}

func isTable(name string) bool { return slices.Contains(tableNames(), name) }

func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// checkName keeps a job's name fit for a folder's name on any system.
func checkName(name string) (message, hint string) {
	if name == "" {
		return "must not be empty", ""
	}
	if len(name) > 100 {
		return "must be at most 100 characters", ""
	}
	if strings.ContainsFunc(name, func(c rune) bool { return !isNameRune(c) }) || strings.ContainsRune("._-", rune(name[0])) {
		return "must be of letters, digits and ._- and begin with a letter or digit", ""
	}
	return "", ""
}

// checkDir takes a path, or nothing.
func checkDir(path string) (message, hint string) {
	if path == "" {
		return "", ""
	}
	return checkPath(path)
}

// checkListen takes an address with a port of its own: joiners must know it.
func checkListen(address string) (message, hint string) {
	if address == "" {
		return "", ""
	}
	_, port, err := net.SplitHostPort(address)
	if n, wrong := strconv.ParseUint(port, 10, 16); err != nil || wrong != nil || n == 0 {
		return fmt.Sprintf("%q is no address with a port", address), `as in ":7077" or "10.0.0.1:7077"`
	}
	return "", ""
}

func checkPath(path string) (message, hint string) {
	switch {
	case strings.TrimSpace(path) == "":
		return "must not be empty", ""
	case strings.ContainsRune(path, 0):
		return "must not hold a zero byte", ""
	}
	return "", ""
}

// checkTokenizer takes the two names, and paths: what has a slash or a point.
func checkTokenizer(name string) (message, hint string) {
	switch {
	case name == "char" || name == "byte":
		return "", ""
	case name == "gpt2":
		return `"gpt2" is not part of ddp`, `name the folder of its vocab.json and merges.txt, as in "./gpt2"`
	case strings.ContainsAny(name, "/."):
		return checkPath(name)
	}
	if near := nearest(name, []string{"char", "byte"}); near != "" {
		hint = `did you mean "` + near + `"?`
	} else if name != "" {
		hint = "a path has a slash or a point in it"
	}
	return `must be "char", "byte" or the path of a tokenizer, not "` + name + `"`, hint
}

func anyText(text string) (message, hint string) {
	if !utf8.ValidString(text) {
		return "must be UTF-8", ""
	}
	return "", ""
}

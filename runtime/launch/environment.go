package launch

import "strings"

// Environment joins lists of NAME=value; a later list wins over an earlier one.
// Each name appears once, in the order of its first appearance. An entry without
// "=" removes its name.
func Environment(lists ...[]string) []string {
	place := map[string]int{}
	var env []string
	for _, list := range lists {
		for _, entry := range list {
			name, _, has := strings.Cut(entry, "=")
			at, known := place[name]
			if !known {
				at = len(env)
				place[name] = at
				env = append(env, "")
			}
			env[at] = entry
			if !has {
				env[at] = ""
			}
		}
	}
	kept := env[:0]
	for _, entry := range env {
		if entry != "" {
			kept = append(kept, entry)
		}
	}
	return kept
}

// Lookup returns the value of name in a list of NAME=value.
func Lookup(env []string, name string) (string, bool) {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

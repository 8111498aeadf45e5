package cli

import "strings"

// setFlags collects --set table.key=value.
type setFlags []string

func (s *setFlags) String() string     { return strings.Join(*s, " ") }
func (s *setFlags) Set(v string) error { *s = append(*s, v); return nil }

// sets adds --set to a command.
func (in *invocation) sets() *[]string {
	var s setFlags
	in.flags.Var(&s, "set", "`table.key=value` overrides the job file; the value is TOML; may be repeated")
	return (*[]string)(&s)
}

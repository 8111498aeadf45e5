package cli

import (
	"strings"

	"ddp/jobs"
)

// setFlags collects --set table.key=value.
type setFlags []string

func (s *setFlags) String() string     { return strings.Join(*s, " ") }
func (s *setFlags) Set(v string) error { *s = append(*s, v); return nil }

// job parses the command line of a command whose argument is a job file, adding
// --set to its flags, and loads the job.
func (in *invocation) job() (*jobs.Job, error) {
	var sets setFlags
	in.flags.Var(&sets, "set", "`table.key=value` overrides the job file; the value is TOML; may be repeated")
	args, err := in.parse(1)
	if err != nil {
		return nil, err
	}
	return jobs.Load(args[0], sets)
}

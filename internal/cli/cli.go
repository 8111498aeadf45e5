// Package cli turns command lines into calls of the packages below it. It alone
// names concrete back ends, and it alone decides exit codes.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
)

// Version is what `ddp version` prints; the Makefile sets it from git.
var Version = "devel"

// console is where a command reads and writes: results to stdout, everything
// else to stderr.
type console struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// command is one sub-command.
type command struct {
	name, args, summary string
	details             string // what --help adds, with an example
	run                 func(in *invocation) error
}

// invocation is one call of a command: its console, its flags and its words.
type invocation struct {
	console
	cmd   command
	flags *flag.FlagSet
	words []string
}

// commands returns all sub-commands in the order that help lists them.
func commands() []command {
	return []command{runCommand, checkCommand, sampleCommand, snapshotsCommand, tokenizerCommand,
		statusCommand, attachCommand, logsCommand, stopCommand, drainCommand, joinCommand,
		launchCommand, selftestCommand, benchCommand, versionCommand}
}

// Main runs the program in the role that its environment names and returns the
// exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := console{stdin, stdout, stderr}
	switch role := os.Getenv(launch.RoleVariable); role {
	case "":
		return dispatch(c, args)
	case launch.RoleRank:
		return rankMain()
	case launch.RoleAgent:
		return elastic.AgentMain()
	default:
		return c.fail(usageError{fmt.Errorf("unknown role %q in %s", role, launch.RoleVariable)})
	}
}

// dispatch finds the sub-command and runs it.
func dispatch(c console, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(c.stderr, overview())
		return launch.ExitUsage
	}
	if asksHelp(args[0]) {
		switch {
		case len(args) > 2:
			return c.fail(usageError{fmt.Errorf("help: arguments wanted: at most 1, given: %d (usage: ddp help [COMMAND])", len(args)-1)})
		case len(args) == 1 || asksHelp(args[1]):
			fmt.Fprint(c.stdout, overview())
			return launch.ExitOK
		}
		args = []string{args[1], "--help"}
	}
	for _, cmd := range commands() {
		if cmd.name == args[0] {
			return c.fail(cmd.run(&invocation{console: c, cmd: cmd, flags: newFlags(cmd.name), words: args[1:]}))
		}
	}
	var names []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
	}
	return c.fail(usageError{fmt.Errorf("unknown command %q (commands: %s; `ddp help` explains them)", args[0], strings.Join(names, ", "))})
}

func asksHelp(arg string) bool {
	return arg == "help" || arg == "-h" || arg == "--help" || arg == "-help"
}

// newFlags is a flag set that leaves complaining to its caller.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse reads the flags and returns the plain arguments; want is how many there
// must be, -1 any. Flags may stand before, between and after the arguments;
// everything after "--" is an argument.
func (in *invocation) parse(want int) ([]string, error) {
	var plain []string
	cmd, flags, rest := in.cmd, in.flags, in.words
	for {
		if err := flags.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprint(in.stdout, cmd.help(flags))
				return nil, errHelpShown
			}
			return nil, usageError{fmt.Errorf("%s: %w (see `ddp %s --help`)", cmd.name, err, cmd.name)}
		}
		left := flags.Args()
		if used := len(rest) - len(left); used > 0 && rest[used-1] == "--" || len(left) == 0 {
			plain = append(plain, left...)
			break
		}
		plain = append(plain, left[0])
		rest = left[1:]
	}
	if want >= 0 && len(plain) != want {
		usage := strings.TrimSpace("ddp " + cmd.name + " " + cmd.args)
		return nil, usageError{fmt.Errorf("%s: arguments wanted: %d, given: %d (usage: %s)", cmd.name, want, len(plain), usage)}
	}
	return plain, nil
}

// help is the text of `ddp COMMAND --help`.
func (cmd command) help(flags *flag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: ddp %s %s\n\n%s\n", cmd.name, cmd.args, cmd.details)
	var options strings.Builder
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		name := "--" + f.Name
		if value != "" {
			name += " " + value
		}
		fmt.Fprintf(&options, "  %-24s %s\n", name, usage)
	})
	if options.Len() > 0 {
		fmt.Fprintf(&b, "\nflags:\n%s", options.String())
	}
	return b.String()
}

// overview is the text of `ddp help`.
func overview() string {
	var b strings.Builder
	b.WriteString("ddp trains GPT models data-parallel and keeps training when processes fail.\n\ncommands:\n")
	for _, cmd := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", cmd.name, cmd.summary)
	}
	b.WriteString("\nstart here:\n  ddp run jobs/mingpt.toml\n  ddp run --help\n")
	return b.String()
}

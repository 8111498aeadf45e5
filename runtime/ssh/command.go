package ssh

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"ddp/runtime/launch"
)

// What a host's shell says on stdout before anything else of ours: that the
// program follows, or that it is missing, and on what system.
const (
	hereMark    = "ddp-program-starts"
	missingMark = "ddp-program-missing "
)

// copiesDays is after how many days without change a copy is cleared away.
const copiesDays = 30

// Command returns the command that runs p on host in a role; its stdin and
// stdout are the program's as soon as Answer says that it is there.
func (p Program) Command(host, role string) (launch.Command, error) {
	places := `"$d/ddp-$h"`
	if p.path != "" {
		places = p.path + " " + places
	}
	return command(host, p.prologue()+
		`for f in `+places+`; do `+
		`if test -x "$f" && test "$(sha256sum <"$f" | cut -c1-64)" = $h; then `+
		`echo `+hereMark+`; `+launch.RoleVariable+`=`+role+` exec "$f"; fi; done; `+
		`echo "`+missingMark+`$(uname -sm)"`)
}

// copyCommand returns the command that makes its stdin host's copy of p.
func (p Program) copyCommand(host string) (launch.Command, error) {
	// Many hosts may share one home.
	return command(host, p.prologue()+
		`t="$d/.ddp-$h.$(uname -n).$$"; umask 077; `+
		`mkdir -p "$d" && cat >"$t" && chmod 700 "$t" || { rm -f "$t"; exit 1; }; `+
		`if test "$(sha256sum <"$t" | cut -c1-64)" = $h; then mv -f "$t" "$d/ddp-$h"; `+
		`else rm -f "$t"; echo "the copy is damaged, or sha256sum is missing" >&2; exit 1; fi; `+
		fmt.Sprintf(`find "$d" -name "*ddp-*" -mtime +%d -exec rm -f "{}" ";" || true`, copiesDays))
}

// prologue says what is sought and where copies are.
func (p Program) prologue() string {
	return `h=` + p.hash + `; d="${XDG_CACHE_HOME:-$HOME/.cache}/ddp"; `
}

// command runs a script on host. The user's shell there may be any, so the
// script is one word without newline, single quote or exclamation mark.
func command(host, script string) (launch.Command, error) {
	if host == "" || strings.HasPrefix(host, "-") {
		return launch.Command{}, fmt.Errorf("%q is no host name", host)
	}
	path, err := exec.LookPath("ssh")
	if err != nil {
		return launch.Command{}, fmt.Errorf("reach host %s: %w (hint: install the OpenSSH client)", host, err)
	}
	args := []string{"ssh", "-T",
		"-o", "BatchMode=yes", // nobody is there who could type a password
		"-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
		// What the user's configuration may ask for, and a program's stdin and stdout can't bear.
		"-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "LogLevel=ERROR",
		host, "--", "exec /bin/sh -c '" + script + "'"}
	return launch.Command{Path: path, Args: args, Env: os.Environ()}, nil
}

// Answer is what a line from host's shell means.
type Answer int

const (
	Greeting Answer = iota // nothing: a shell's start-up file said it
	Here                   // from now on the program speaks
	Missing                // the host has no such program
)

// Answered reads a line that came before the program's own. system is what the
// host is, when it has no such program.
func Answered(line string) (a Answer, system string) {
	line = strings.TrimSpace(line)
	switch {
	case line == hereMark:
		return Here, ""
	case strings.HasPrefix(line, missingMark):
		return Missing, strings.TrimPrefix(line, missingMark)
	}
	return Greeting, ""
}

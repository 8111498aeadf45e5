package ssh

import (
	"fmt"
	"strings"

	"ddp/runtime/launch"
)

// failed is ssh's exit code for what goes wrong before the command runs.
const failed = 255

// reason is a phrase of ssh's, what the user can do about it, and whether it may
// go away by itself.
type reason struct {
	phrase, hint string
	passing      bool
}

// reasons are looked for in order. HOST stands for the host's name.
var reasons = []reason{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the host's key is not the one that is known: if it was installed anew, `ssh-keygen -R HOST` and connect once by hand", false},
	{"Host key verification failed", "the host's key is not known: connect once with `ssh HOST true` and compare it", false},
	{"Permission denied", "the key is not accepted: `ssh HOST true` must work without a question; ssh-copy-id HOST, ssh-add, or User and IdentityFile in ~/.ssh/config", false},
	{"Too many authentication failures", "name the right key with IdentityFile and IdentitiesOnly in ~/.ssh/config", false},
	{"Could not resolve hostname", "no such host is known: check cluster.nodes, or give its address as HostName in ~/.ssh/config", false},
	{"Connection refused", "no ssh server answers there: does sshd run, and on that port?", true},
	{"timed out", "nothing answers: the host is down, or a firewall drops the packets", false},
	{"No route to host", "the host is down, or a firewall or wrong network stands between", false},
	{"Network is unreachable", "this machine has no route to the host's network", false},
	{"Connection reset by", "the ssh server hung up: it is starting, or limits connections (MaxStartups)", true},
	{"Connection closed by", "the ssh server hung up: it is starting, or limits connections (MaxStartups)", true},
	{"kex_exchange_identification", "no ssh server answers there, or it limits connections (MaxStartups)", true},
	{"Exec format error", "the program is for another kind of processor", false},
	{"No space left on device", "the host's disk is full", false},
	{"Read-only file system", "the home folder cannot be written: set XDG_CACHE_HOME there", false},
}

// find is the reason that the lines give, nil for none that is known.
func find(said []string) *reason {
	text := strings.Join(said, "\n")
	for i := range reasons {
		if strings.Contains(text, reasons[i].phrase) {
			return &reasons[i]
		}
	}
	return nil
}

// Explain puts on one line why ssh, or what it ran on host, ended, with a hint
// where the user can act. said is its stderr.
func Explain(host string, exit launch.Exit, said []string) string {
	why := exit.String()
	if len(said) > 0 {
		why += ": " + strings.Join(said[max(0, len(said)-keptLines):], "; ")
	}
	hint := ""
	switch r := find(said); {
	case r != nil:
		hint = strings.ReplaceAll(r.hint, "HOST", host)
	case exit.Code == failed:
		hint = fmt.Sprintf("`ssh %s true` shows more with -v", host)
	case exit.Code == 126:
		hint = "the program cannot be executed there: is its folder mounted noexec?"
	}
	if hint != "" {
		why += " (hint: " + hint + ")"
	}
	return why
}

// Passing tells whether another try may end better.
func Passing(exit launch.Exit, said []string) bool {
	r := find(said)
	return exit.Code == failed && r != nil && r.passing
}

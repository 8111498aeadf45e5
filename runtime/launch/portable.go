package launch

import (
	"slices"
	"strings"
)

// ownVariables are names, or with a star beginnings of names, of variables that
// belong to a machine, a login or a terminal and mean nothing on other hosts.
var ownVariables = []string{
	"HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_", "MAIL", "HOSTNAME", "HOST",
	"TMPDIR", "TMP", "TEMP", "XDG_*", "DBUS_*", "SSH_*", "SUDO_*", "KRB5CCNAME",
	"TERM", "TERM_*", "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "STY", "TMUX*", "WINDOWID", "DISPLAY", "XAUTHORITY", "WAYLAND_*",
	"INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_*", "MAINPID", "MANAGERPID", "SYSTEMD_*",
	RoleVariable, TreeVariable,
}

// Portable returns those entries of a list of NAME=value that mean the same on
// another host.
func Portable(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(ownVariables, func(own string) bool {
			stem, open := strings.CutSuffix(own, "*")
			return name == own || open && strings.HasPrefix(name, stem)
		})
	})
}

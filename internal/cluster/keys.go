package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// Keys is a folder with what ssh's client and servers need: keys of their own,
// none of the user's.
type Keys struct {
	t   testing.TB
	Dir string
}

// NewKeys makes a user's and a host's key.
func NewKeys(t testing.TB) *Keys {
	t.Helper()
	k := &Keys{t, t.TempDir()}
	k.generate("user")
	k.generate("host")
	k.copy("user.pub", "authorized")
	k.Write("home/.bashrc", "", 0o600)
	return k
}

func (k *Keys) path(name string) string { return filepath.Join(k.Dir, name) }

func (k *Keys) generate(name string) {
	k.t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", k.path(name)).CombinedOutput(); err != nil {
		k.t.Fatalf("ssh-keygen: %v %s", err, out)
	}
}

func (k *Keys) copy(from, to string) { k.Write(to, string(k.read(from)), 0o600) }

func (k *Keys) read(name string) []byte {
	k.t.Helper()
	text, err := os.ReadFile(k.path(name))
	if err != nil {
		k.t.Fatal(err)
	}
	return text
}

// Write puts a file into the folder and returns its path.
func (k *Keys) Write(name, text string, mode os.FileMode) string {
	k.t.Helper()
	path := k.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// server is an sshd_config for these keys, whose sessions have env and, as home, a
// folder of ours: what the user's own shell does at its start is not ours to test.
// extra are lines of it.
func (k *Keys) server(env []string, extra ...string) string {
	env = append(env, "HOME="+k.path("home"))
	return strings.Join(append(extra, "SetEnv "+strings.Join(env, " "), // of several such lines the first counts

		"HostKey "+k.path("host"), "AuthorizedKeysFile "+k.path("authorized"),
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes",
		"UseDNS no", "PrintMotd no", "PrintLastLog no", "PidFile none", ""), "\n")
}

// client makes an `ssh` that knows hosts (name to "address:port") and these keys,
// and returns a PATH in which it comes first.
func (k *Keys) client(hosts map[string]string) string {
	k.t.Helper()
	me, err := user.Current()
	if err != nil {
		k.t.Fatal(err)
	}
	var config, known strings.Builder
	for name, at := range hosts {
		address, port, _ := strings.Cut(at, ":")
		fmt.Fprintf(&config, "Host %s\n HostName %s\n Port %s\n HostKeyAlias %s\n", name, address, port, name)
		fmt.Fprintf(&known, "%s %s", name, k.read("host.pub"))
	}
	fmt.Fprintf(&config, "Host *\n User %s\n IdentityFile %s\n IdentityAgent none\n IdentitiesOnly yes\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n UpdateHostKeys no\n",
		me.Username, k.path("user"), k.path("known"))
	k.Write("known", known.String(), 0o600)
	k.Write("config", config.String(), 0o600)
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		k.t.Fatal(err)
	}
	k.Write("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, k.path("config")), 0o755)
	return "PATH=" + k.path("bin") + ":" + os.Getenv("PATH")
}

// sshd is the server's path, which it wants to be started by.
func sshd(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd" // often not in a user's PATH
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("sshd is needed (Debian: openssh-server): %v", err)
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd's own jail
			t.Fatal(err)
		}
	}
	return path
}

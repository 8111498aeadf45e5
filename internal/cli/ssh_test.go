package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddp/internal/cluster"
)

// oddName is a word that every careless quoting breaks.
const oddName = `it's "odd" $HOME \ é * ;`

// sshFolder is a tinyFolder with an odd name whose job runs on hosts, a rank each.
func sshFolder(t *testing.T, hosts ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), oddName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, h := range hosts {
		nodes = append(nodes, fmt.Sprintf(`{ host = %q, ranks = 1 }`, h))
	}
	job := strings.Replace(tinyJob, "ranks = 2", "nodes = ["+strings.Join(nodes, ", ")+"]", 1)
	job = strings.Replace(job, `"snap"`, fmt.Sprintf("%q", oddName), 1)
	write(t, filepath.Join(dir, "job.toml"), job)
	write(t, filepath.Join(dir, "text.txt"), tinyText())
	return dir
}

// TestSSHRun trains on two hosts behind a real sshd that know nothing of ddp:
// the program gets there, and with it working directory, job and environment.
func TestSSHRun(t *testing.T) {
	want := undisturbed(t, "--set", "cluster.ranks=1")
	s := cluster.NewLoopback(t, []string{"alpha", "beta"}, nil)
	dir := sshFolder(t, "alpha", "beta")
	elsewhere(t)
	odd := []string{"DDP_TEST_ODD=" + oddName + "\nnext\tline", "DDP_TEST_BYTES=\xff\xfe", "DDP_TEST_EMPTY="}
	p := start(t, dir, odd, "run", "job.toml", "--json")
	var far [][]byte
	p.until(func(e event) bool {
		if e.Event == "rank_up" {
			env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", e.PID))
			if err != nil {
				t.Error(err)
			}
			far = append(far, env)
		}
		return false
	})
	sameEnd(t, p.finish(), want)
	for _, env := range far {
		for _, entry := range odd {
			if !bytes.Contains(env, []byte("\x00"+entry+"\x00")) {
				t.Errorf("%q did not arrive", entry)
			}
		}
	}
	if len(far) != 2 {
		t.Errorf("%d ranks were up, want 2", len(far))
	}
	if copies := cached(t, s); len(copies) != 1 {
		t.Errorf("copies of the program: %q, want one", copies)
	}
	noneLeft(t, dir)
	noneRunFrom(t, s.Dir)
}

// elsewhere moves the binary to where hosts don't find it: a path with odd
// names is not looked for.
func elsewhere(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	usual := binary
	t.Cleanup(func() { binary = usual })
	binary = filepath.Join(t.TempDir(), "ddp "+oddName)
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// cached lists the copies of programs on the server.
func cached(t *testing.T, s *cluster.Loopback) []string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(s.Dir, "home/.cache/ddp"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// noneRunFrom fails when a process runs a program below dir.
func noneRunFrom(t *testing.T, dir string) {
	t.Helper()
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range exes {
		if exe, err := os.Readlink(link); err == nil && strings.HasPrefix(exe, dir) {
			t.Errorf("%s still runs %s", filepath.Dir(link), exe)
		}
	}
}

// TestSSHCopyIsChecked damages the copy that a host has: it gets another. A copy
// that is good is used as it is.
func TestSSHCopyIsChecked(t *testing.T) {
	s := cluster.NewLoopback(t, []string{"alpha"}, nil)
	elsewhere(t)
	copies := 0
	for _, damage := range []bool{false, true, false} {
		dir := sshFolder(t, "alpha")
		if damage {
			path := filepath.Join(s.Dir, "home/.cache/ddp", cached(t, s)[0])
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text[len(text)/2] ^= 1
			if err := os.WriteFile(path, text, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=2")
		p.finish()
		copies += strings.Count(p.stderr.String(), "copying this program to alpha")
		noneRunFrom(t, s.Dir)
	}
	if copies != 2 || len(cached(t, s)) != 1 {
		t.Errorf("%d copies were made, want 2, and %q kept, want one", copies, cached(t, s))
	}
}

// TestSSHRefusals names what is wrong with a host, and what to do about it.
func TestSSHRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		env     []string
		prepare func(*cluster.Loopback)
		want    []string
	}{
		"wrong key": {prepare: func(s *cluster.Loopback) { s.Write("authorized", "", 0o600) },
			want: []string{"Permission denied", "hint: the key is not accepted", "ssh-copy-id alpha"}},
		"unknown key of the host": {prepare: func(s *cluster.Loopback) { s.Write("known", "", 0o600) },
			want: []string{"Host key verification failed", "connect once with `ssh alpha true`"}},
		"unknown host": {prepare: func(s *cluster.Loopback) { s.Write("config", "Host alpha\n HostName no-such-host.invalid\n", 0o600) },
			want: []string{"Could not resolve hostname", "hint: no such host is known"}},
		"no server": {prepare: func(s *cluster.Loopback) { s.Close() },
			want: []string{"Connection refused", "does sshd run"}},
		"server hangs up": {prepare: func(s *cluster.Loopback) { s.Refuse.Store(100) },
			want: []string{"kex_exchange_identification", "hint: the ssh server hung up"}},
		"other processor": {env: []string{"PATH=%DIR/other:/usr/bin:/bin"},
			prepare: func(s *cluster.Loopback) { s.Write("other/uname", "#!/bin/sh\necho Linux riscv64\n", 0o755) },
			want:    []string{"it is Linux riscv64, but this program runs on Linux", "same kind of system"}},
		"full or read-only home": {env: []string{"XDG_CACHE_HOME=/proc"},
			want: []string{"copy the program", "/proc/ddp"}},
		"no sha256sum": {env: []string{"PATH=%DIR/few"},
			prepare: func(s *cluster.Loopback) {
				for _, tool := range []string{"uname", "cut", "mkdir", "cat", "chmod", "rm", "mv"} {
					s.Write("few/"+tool, "#!/bin/sh\nexec /usr/bin/"+tool+" \"$@\"\n", 0o755)
				}
			},
			want: []string{"sha256sum is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster.NewLoopback(t, []string{"alpha"}, c.env)
			if c.prepare != nil {
				c.prepare(s)
			}
			elsewhere(t)
			dir := sshFolder(t, "alpha")
			p := start(t, dir, nil, "run", "job.toml", "--json")
			code := p.wait()
			e, _ := p.last("failure")
			for _, w := range c.want {
				if !strings.Contains(e.Cause, w) {
					t.Errorf("the cause %q lacks %q", e.Cause, w)
				}
			}
			if code != 4 || strings.Contains(e.Cause, "\n") {
				t.Errorf("exit code %d, want 4; cause %q", code, e.Cause)
			}
			noneLeft(t, dir)
		})
	}
}

// TestSSHTurnedAwayTwice tries again where a server takes no connection for the moment.
func TestSSHTurnedAwayTwice(t *testing.T) {
	s := cluster.NewLoopback(t, []string{"alpha"}, nil)
	s.Refuse.Store(2)
	start(t, sshFolder(t, "alpha"), nil, "run", "job.toml", "--json", "--set", "train.max_steps=2").finish()
	if s.Served.Load() != 1 {
		t.Errorf("%d connections, want 1 after two refusals", s.Served.Load())
	}
}

// TestSSHClockSkew tells of a host whose clock is years ahead, and goes on.
func TestSSHClockSkew(t *testing.T) {
	s := cluster.NewLoopback(t, []string{"alpha"}, nil, "ForceCommand %DIR/skewed")
	s.Write("skewed", "#!/bin/sh\nsh -c \"$SSH_ORIGINAL_COMMAND\" | sed -u 's/\"clock\":1/\"clock\":2/'\n", 0o755)
	p := start(t, sshFolder(t, "alpha"), nil, "run", "job.toml", "--json", "--set", "train.max_steps=2")
	p.finish()
	if said := p.stderr.String(); !strings.Contains(said, "the clock of alpha is ") || !strings.Contains(said, "ahead of ours") {
		t.Errorf("stderr %q does not tell of the clock", said)
	}
}

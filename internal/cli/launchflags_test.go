package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// say is a command that shows its variables and arguments.
const say = `echo "$WORLD_SIZE $TORCHELASTIC_MAX_RESTARTS $ROLE_NAME $*"`

// TestLaunchSpellings gives flags as torchrun's users do.
func TestLaunchSpellings(t *testing.T) {
	for _, c := range []struct {
		env   string
		flags string
		want  string
	}{
		{"", "--nproc-per-node 2 --max-restarts 3 --role trainer", "2 3 trainer"},
		{"", "--nproc_per_node=2 --max_restarts=3 --role=trainer", "2 3 trainer"},
		{"", "--nproc-per 2 -max_restarts=3 -r0 -t 0:0 --standalone --rdzv_backend c10d", "2 3 default"},
		{"", "--nnodes=1:1 --nproc_per_node=1 --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --rdzv_id=7 --start-method fork --monitor-interval 5 --log_dir=logs", "1 0 default"},
		{"", "--standalone --nnodes 3 --event_log_handler null --signals-to-handle SIGTERM,SIGUSR2 --shutdown_timeout 9", "1 0 default"},
		{"PET_NPROC_PER_NODE=2 PET_MAX_RESTARTS=4 PET_STANDALONE=1", "--max-restarts 3", "2 3 default"},
	} {
		t.Run(c.flags, func(t *testing.T) {
			for _, e := range strings.Fields(c.env) {
				name, value, _ := strings.Cut(e, "=")
				t.Setenv(name, value)
			}
			args := append([]string{"launch"}, strings.Fields(c.flags)...)
			out, stderr := succeed(t, t.TempDir(), append(args, "sh", "-c", say, "x", "--max-restarts", "9")...)
			want := c.want + " --max-restarts 9\n"
			if got, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(out, "[rank 0] "), "[rank 1] "), "\n"); got+"\n" != want || stderr != "" {
				t.Errorf("stdout %q, stderr %q, want %q", out, stderr, want)
			}
		})
	}
}

// TestLaunchRefusals says what is wrong on one line.
func TestLaunchRefusals(t *testing.T) {
	for _, c := range [][2]string{
		{"--nproc-per-node many", `launch: --nproc-per-node is "many", want a number, gpu, cpu or auto`},
		{"--nnodes 2:1", `launch: --nnodes is "2:1", want N or MIN:MAX of at least 1`},
		{"--nnodes 2 --node-rank 2", `launch: --node-rank is 2 of 2 nodes: they count from 0`},
		{"--rdzv-backend etcd", `launch: --rdzv-backend is "etcd", want c10d or static`},
		{"--rdzv-conf join_timout=3", `launch: --rdzv-conf has no key "join_timout" (join_timeout, last_call_timeout, is_host, keep_alive_interval, keep_alive_max_attempt)`},
		{"--rdzv-conf join_timeout=soon", `launch: --rdzv-conf: join_timeout is "soon"`},
		{"--nnodes 2 --rdzv-backend c10d --rdzv-endpoint localhost:0", `launch: --rdzv-endpoint is "localhost:0": nodes can only meet at a port that they know`},
		{"-t 4", `launch: --tee is "4", want 0, 1 (stdout), 2 (stderr) or 3 (both), or LOCAL_RANK:NUMBER,...`},
		{"--redirects 0:1,3", `launch: --redirects is "0:1,3", want 0, 1 (stdout), 2 (stderr) or 3 (both), or LOCAL_RANK:NUMBER,...`},
		{"--local-ranks-filter all", `launch: --local-ranks-filter is "all", want numbers as in 0,1`},
		{"--master-port 70000", `launch: --master-port is 70000, want 1 to 65535`},
		{"--rdzv 1", "launch: flag provided but not defined: -rdzv (see `ddp launch --help`)"},
		{"-m --no-python", `launch: --module and --no-python exclude each other`},
		{"missing.py", `launch: stat missing.py: no such file or directory`},
		{"-- missing.py", `launch: cannot run "missing.py": executable file not found in $PATH (without the -- before it, Python runs it)`},
	} {
		args := append(append([]string{"launch"}, strings.Fields(c[0])...), "true")
		code, stdout, stderr := execute(t, t.TempDir(), args...)
		if code != 2 || stdout != "" || stderr != "ddp: "+c[1]+"\n" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", c[0], code, stdout, stderr)
		}
	}
}

// TestLaunchPython runs scripts and modules under a Python that tells how it was called.
func TestLaunchPython(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "train.py"), "")
	write(t, filepath.Join(dir, "script"), "")
	python := filepath.Join(dir, "python")
	if err := os.WriteFile(python, []byte("#!/bin/sh\necho python \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run.py"), []byte("#!/bin/sh\necho itself \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHON_EXEC", python)
	for _, c := range [][2]string{
		{"train.py --lr 1", "python -u train.py --lr 1\n"},
		{"-m pkg.train -m x", "python -u -m pkg.train -m x\n"},
		{"--run-path script a", "python -u script a\n"},
		{"--no-python ./run.py a", "itself a\n"},
		{"-- ./run.py a", "itself a\n"},
		{"./run.py a", "python -u ./run.py a\n"},
	} {
		out, _ := succeed(t, dir, append([]string{"launch"}, strings.Fields(c[0])...)...)
		if out != c[1] {
			t.Errorf("%s: %q, want %q", c[0], out, c[1])
		}
	}
}

// TestLaunchStreams sends streams to the files, the console or both.
func TestLaunchStreams(t *testing.T) {
	const script = `echo out$LOCAL_RANK; echo err$LOCAL_RANK >&2`
	for _, c := range []struct {
		flags       string
		out, errors []string
	}{
		{"", []string{"[rank 0] out0", "[rank 1] out1"}, []string{"[rank 0] err0", "[rank 1] err1"}},
		{"-r 3", nil, nil},
		{"--redirects 1", nil, []string{"[rank 0] err0", "[rank 1] err1"}},
		{"-r 0:1,1:2", []string{"[rank 1] out1"}, []string{"[rank 0] err0"}},
		{"-t 3 --role eval", []string{"[eval0]:out0", "[eval1]:out1"}, []string{"[eval0]:err0", "[eval1]:err1"}},
		{"-r 3 --tee 1:1 --log-line-prefix-template ${rank}/${local_rank}${x}:", []string{"1/1${x}:out1"}, nil},
		{"--local-ranks-filter 1", []string{"[rank 1] out1"}, []string{"[rank 1] err1"}},
	} {
		dir := t.TempDir()
		args := append([]string{"launch", "--nproc-per-node", "2", "--log-dir", "logs", "--rdzv-id", "job"}, strings.Fields(c.flags)...)
		out, errs := succeed(t, dir, append(args, "--", "sh", "-c", script)...)
		if !sameLines(out, c.out) || !sameLines(errs, c.errors) {
			t.Errorf("%q: stdout %q, stderr %q", c.flags, out, errs)
		}
		for rank := range 2 {
			for _, kind := range []string{"out", "err"} {
				files, err := filepath.Glob(filepath.Join(dir, "logs", "job_*", "gen-0", fmt.Sprintf("rank-%d.%s", rank, kind)))
				if err != nil || len(files) != 1 {
					t.Fatalf("%q: files %v, %v", c.flags, files, err)
				}
				if text, err := os.ReadFile(files[0]); err != nil || string(text) != fmt.Sprintf("%s%d\n", kind, rank) {
					t.Errorf("%s: %q, %v", files[0], text, err)
				}
			}
		}
	}
}

// sameLines compares lines in any order.
func sameLines(text string, want []string) bool {
	n := 0
	for line := range strings.Lines(text) {
		n++
		found := false
		for _, w := range want {
			found = found || line == w+"\n"
		}
		if !found {
			return false
		}
	}
	return n == len(want)
}

// TestGPUCount counts device files, less what the user hides.
func TestGPUCount(t *testing.T) {
	dev := t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm"} {
		write(t, filepath.Join(dev, name), "")
	}
	for visible, want := range map[string]int{"": 3, "0": 1, "1,0": 2, "0,-1,1": 1, "-1": 0, "GPU-1, GPU-2": 2, "0,1,2,3": 3} {
		if got := gpuCount(dev, visible); got != want {
			t.Errorf("%q: %d, want %d", visible, got, want)
		}
	}
}

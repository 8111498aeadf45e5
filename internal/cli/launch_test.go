package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLaunchVariables starts three ranks that say who they are.
func TestLaunchVariables(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,5") // which rank takes which is the command's affair
	out, stderr := succeed(t, t.TempDir(), "launch", "--nproc-per-node", "3", "--", "sh", "-c",
		`echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS \
			$ROLE_RANK $ROLE_NAME $ROLE_WORLD_SIZE $GROUP_WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE $TORCH_NCCL_ASYNC_ERROR_HANDLING $OMP_NUM_THREADS ${TORCHELASTIC_ERROR_FILE:+file} ${TORCHELASTIC_RUN_ID:+id} $CUDA_VISIBLE_DEVICES`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if len(lines) != 3 || stderr != "" {
		t.Fatalf("stdout %q, stderr %q", out, stderr)
	}
	port := ""
	for r, line := range lines {
		n := string(rune('0' + r))
		m := regexp.MustCompile(`^\[rank ` + n + `\] ` + n + ` ` + n + ` 3 3 0 0 \S+ (\d+) 0 0 ` + n + ` default 3 1 False 1 1 file id 2,5$`).FindStringSubmatch(line)
		if m == nil || port != "" && m[1] != port {
			t.Errorf("rank %d: %q, port of the others %s", r, line, port)
			continue
		}
		port = m[1]
	}
}

// TestLaunchExitCode ends as the command ends.
func TestLaunchExitCode(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
		stderr string
	}{
		{"exit 0", 0, ""},
		{"exit 7", 7, "\nsh FAILED\n"},
		{"kill -9 $$", 137, "  exitcode  : 137 (pid: "},
	} {
		code, stdout, stderr := execute(t, t.TempDir(), "launch", "--", "sh", "-c", c.script)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.stderr) || code == 0 && stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", c.script, code, stdout, stderr)
		}
	}
}

// TestLaunchOutput keeps the streams apart, one rank's lines as they are.
func TestLaunchOutput(t *testing.T) {
	dir := t.TempDir()
	out, stderr := succeed(t, dir, "launch", "--log-dir", "logs", "--", "sh", "-c", `echo " one "; echo two >&2; printf three`)
	if out != " one \nthree\n" || stderr != "two\n" {
		t.Errorf("stdout %q, stderr %q", out, stderr)
	}
	kept := ""
	for path := range tree(t, filepath.Join(dir, "logs")) {
		if text, err := os.ReadFile(path); err == nil { // a folder is none
			kept += string(text)
		}
	}
	if !strings.Contains(kept, " one \n") || !strings.Contains(kept, "two\n") || !strings.Contains(kept, "three") {
		t.Errorf("the log folder holds %q", kept)
	}
}

// TestLaunchTemporary keeps its temporary folder after a failure alone.
func TestLaunchTemporary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, c := range []struct {
		script string
		left   int
	}{{"echo fine", 0}, {"echo broken; exit 1", 1}} {
		execute(t, dir, "launch", "--", "sh", "-c", c.script)
		if left, err := filepath.Glob(filepath.Join(dir, "ddp-*")); err != nil || len(left) != c.left {
			t.Errorf("%s: left %v, %v", c.script, left, err)
		}
	}
}

// TestLaunchRestarts starts all ranks anew when one fails.
func TestLaunchRestarts(t *testing.T) {
	out, _ := succeed(t, t.TempDir(), "launch", "--nproc-per-node", "2", "--max-restarts", "2", "--", "sh", "-c",
		`if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then echo rank $RANK; else exit $((1-RANK)); fi`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"[rank 0] rank 0", "[rank 1] rank 1"}) {
		t.Errorf("%q", out)
	}
	code, _, _ := execute(t, t.TempDir(), "launch", "--max-restarts", "1", "--", "sh", "-c", "exit 7")
	if code != 7 {
		t.Errorf("exit code %d after the last restart, want the command's 7", code)
	}
}

// TestLaunchPi runs a Go program on the runtime below ours.
func TestLaunchPi(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "pi"), "ddp/spmd/examples/pi").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, stderr := succeed(t, dir, "launch", "--nproc-per-node", "2", "--", "./pi", "-n", "100000")
	if !strings.HasPrefix(out, "[rank 0] pi is about 3.14159265") || !strings.Contains(out, "from 2 ranks") || stderr != "" {
		t.Errorf("stdout %q, stderr %q", out, stderr)
	}
}

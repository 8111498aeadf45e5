package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTooFewFiles runs where 40 files may be open at once: what is wrong is said
// before a rank starts, and the run ends.
func TestTooFewFiles(t *testing.T) {
	dir := tinyFolder(t)
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 40 && exec "$0" run job.toml --json`, binary)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "48 files may be open at once, and the limit here is 40 (hint: raise it with `ulimit -n 48`") || strings.Contains(string(out), `"rank_up"`) {
		t.Errorf("%v: %s", err, out)
	}
	noneLeft(t, dir)
}

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// torchPython is a Python that has PyTorch: $DDP_TEST_PYTHON, or python3.
func torchPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("DDP_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import torch.distributed").Run(); err != nil {
		t.Skipf("%s has no PyTorch: %v", python, err)
	}
	return python
}

// torchScript is the absolute path of testdata/train.py.
func torchScript(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs("testdata/train.py")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

const torchDone = "[rank 0] from step 5, world 2, off by little\n"

// TestTorchOnOneNode kills a rank of PyTorch's DistributedDataParallel.
func TestTorchOnOneNode(t *testing.T) {
	t.Setenv("PYTHON_EXEC", torchPython(t))
	dir := t.TempDir()
	out, stderr := succeed(t, dir, "launch", "--nproc_per_node=2", "--max_restarts=1", torchScript(t), dir, "kill")
	if out != torchDone || !strings.Contains(stderr, "ddp: rank 1 on ") || !strings.Contains(stderr, ": killed by SIGKILL\n") {
		t.Errorf("stdout %q, stderr %q", out, stderr)
	}
}

// TestTorchOnTwoNodes lets the rank of the other node raise.
func TestTorchOnTwoNodes(t *testing.T) {
	python, dir, port := torchPython(t), t.TempDir(), portNumber(t)
	flags := fmt.Sprintf("--nnodes 2 --master_port %s --max_restarts 1 -r 3 --log_dir logs --node_rank ", port)
	script := fmt.Sprintf(`exec %s -u %s %s raise`, python, torchScript(t), dir)
	follow, lead := startNode(t, dir, flags+"1", script), startNode(t, dir, flags+"0", script)
	lead.ends(0)
	follow.ends(0)
	if text := lead.stderr.String(); lead.out.Len() > 0 || !strings.Contains(text, "ddp: rank 1 on ") || !strings.Contains(text, "exit code 1: RuntimeError: the data ran out\n") {
		t.Errorf("stdout %q, stderr %q", lead.out.String(), text)
	}
	for name, want := range map[string]string{"gen-1/rank-0.out": "from step 5, world 2, off by little\n", "gen-0/rank-1.error.json": `in fail\n`, "gen-0/rank-1.err": "RuntimeError: the data ran out\n"} {
		files, err := filepath.Glob(filepath.Join(dir, "logs", "none_*", name))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s holds %s, %v, want %s", name, text, err, want)
		}
	}
}

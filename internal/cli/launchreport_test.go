package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// recordedError is what torch 2.15's @record wrote of a ValueError.
const recordedError = `{"message": {"message": "ValueError: no", "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"train.py\", line 9, in main\n    raise ValueError(\"no\")\nValueError: no\n", "timestamp": "1796484843"}}}`

// TestLaunchReport reads the root cause out of torchelastic's file and lays it
// out, and passes it to the launcher above.
func TestLaunchReport(t *testing.T) {
	t.Setenv("TZ", "UTC")
	dir := t.TempDir()
	ours := filepath.Join(dir, "above", "error.json")
	t.Setenv("TORCHELASTIC_ERROR_FILE", ours)
	write(t, filepath.Join(dir, "recorded"), recordedError)
	code, stdout, stderr := execute(t, dir, "launch", "--nproc-per-node", "2", "--max-restarts", "1", "--log-dir", "logs", "--rdzv-id", "a/b", "--", "sh", "-c",
		`if [ $RANK = 1 ]; then cp recorded $TORCHELASTIC_ERROR_FILE; exit 3; fi; sleep 1000`)
	want := regexp.MustCompile(`^ddp: rank 1 on \S+: exit code 3: ValueError: no
ddp: rank 1 on \S+: exit code 3: ValueError: no
={60}
sh FAILED after 1 restarts
-{60}
Root Cause \(first observed failure\):
  time      : 2026-12-05_15:34:03
  host      : \S+
  rank      : 1 \(local_rank: 1\)
  exitcode  : 3 \(pid: \d+\)
  cause     : exit code 3: ValueError: no
  error_file: logs/b_[0-9a-f]{8}/gen-1/rank-1.error.json
  traceback : Traceback \(most recent call last\):
      File "train.py", line 9, in main
        raise ValueError\("no"\)
    ValueError: no
={60}
$`)
	if code != 3 || stdout != "" || !want.MatchString(stderr) {
		t.Errorf("exit code %d, stdout %q, stderr\n%s", code, stdout, stderr)
	}
	var passed struct {
		Message struct {
			Message   string
			ErrorCode int
			ExtraInfo map[string]string
		}
	}
	text, err := os.ReadFile(ours)
	if err == nil {
		err = json.Unmarshal(text, &passed)
	}
	if err != nil || passed.Message.Message != "ValueError: no" || passed.Message.ErrorCode != 3 || passed.Message.ExtraInfo["timestamp"] != "1796484843" {
		t.Errorf("%v, %s", err, text)
	}
}

// TestLaunchBlamesTheCause lets a rank whose peer is gone fail first.
func TestLaunchBlamesTheCause(t *testing.T) {
	for name, victim := range map[string]string{
		"in its error file": `echo '{"message": {"message": "RuntimeError: [gloo/pair.cc:534] Connection closed by peer [127.0.0.1]:3", "extraInfo": {}}}' > $TORCHELASTIC_ERROR_FILE`,
		"in its last words": `echo 'torch.distributed.DistNetworkError: Connection was likely closed.' >&2`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			code, _, stderr := execute(t, dir, "launch", "--nproc-per-node", "2", "-r", "3", "--", "sh", "-c",
				`if [ $RANK = 0 ]; then `+victim+`; touch gone; exit 1; fi
				until [ -e gone ]; do sleep 0.01; done; echo out of data >&2; exit 9`)
			if code != 9 || !regexp.MustCompile(`(?s)^ddp: rank 1 on \S+: exit code 9\n.*  rank      : 1 .*last lines: out of data\n`).MatchString(stderr) {
				t.Errorf("exit code %d, %s", code, stderr)
			}
		})
	}
}

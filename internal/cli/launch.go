package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/uuid"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
)

var launchCommand = command{
	name: "launch", args: "[flags] -- COMMAND [ARG ...]", summary: "start any command once per rank, with torchrun's variables",
	details: `Starts COMMAND --nproc-per-node times on this machine with RANK, WORLD_SIZE,
MASTER_ADDR and torchrun's other variables, watches it, and starts all ranks
anew when one fails, up to --max-restarts times. A Go program that uses
spmd.Main finds its world this way.

example:
  ddp launch --nproc-per-node 4 -- ./pi -n 1000000`,
	run: runLaunch,
}

func runLaunch(in *invocation) error {
	ranks := in.flags.Int("nproc-per-node", 1, "`N` ranks on this machine")
	restarts := in.flags.Int("max-restarts", 0, "`N` restarts before giving up")
	logs := in.flags.String("log-dir", "", "`DIR` for each rank's output (default: a temporary folder, kept after a failure)")
	command, err := in.parse(-1)
	if err != nil {
		return err
	}
	if len(command) == 0 {
		return usageError{fmt.Errorf("launch: no command given: ddp launch --nproc-per-node 4 -- COMMAND")}
	}
	if *ranks < 1 {
		return usageError{fmt.Errorf("launch: --nproc-per-node is %d, want at least 1", *ranks)}
	}
	if *restarts < 0 {
		return usageError{fmt.Errorf("launch: --max-restarts is %d, want 0 or more", *restarts)}
	}
	if err := runnable(command[0]); err != nil {
		return err
	}
	id := uuid.NewString()
	temporary := *logs == ""
	if temporary {
		*logs = filepath.Join(os.TempDir(), "ddp-"+id)
	}
	signals, stop := notify()
	defer stop()
	res, err := elastic.Run(context.Background(), elastic.Spec{
		RunID: id, Nodes: []elastic.Node{{Ranks: *ranks}}, Command: command, LogDir: *logs,
		MaxRestarts: *restarts, Signals: signals,
		OnLine: func(_, rank int, stream string, line []byte) {
			w := in.stdout
			if stream == "stderr" {
				w = in.stderr
			}
			if *ranks > 1 {
				fmt.Fprintf(w, "[rank %d] %s\n", rank, line)
			} else {
				fmt.Fprintf(w, "%s\n", line)
			}
		},
		OnFailure: func(f elastic.Failure) {
			fmt.Fprintf(in.stderr, "ddp: rank %d on %s: %s\n", f.Rank, f.Host, f.Cause)
		},
	})
	if err != nil {
		return err
	}
	if res.ExitCode != launch.ExitOK {
		return exitError{res.ExitCode} // what there is in the logs may say why
	}
	if temporary {
		return os.RemoveAll(*logs)
	}
	return nil
}

// runnable finds the command before any process is started, so that a slip in
// its name is one line.
func runnable(name string) error {
	_, err := exec.LookPath(name)
	var reason *exec.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	if err != nil {
		return usageError{fmt.Errorf("launch: cannot run %q: %w", name, err)}
	}
	return nil
}

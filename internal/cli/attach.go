package cli

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"

	"ddp/runtime/launch"
	"ddp/runtime/observe"
)

var attachCommand = command{
	name: "attach", args: "JOB|FOLDER [--json]", summary: "watch a run that was detached, from its beginning to its end",
	details: `Shows the newest run of a job (or the run of a folder) as ` + "`ddp run`" + ` would: what
has happened so far, then what happens. Ctrl-C leaves; the run goes on. Ends with
the run's exit code.

examples:
  ddp attach jobs/mingpt.toml
  ddp attach jobs/mingpt.toml --json | jq 'select(.event == "eval")'`,
	run: runAttach,
}

var logsCommand = command{
	name: "logs", args: "JOB|FOLDER [-f]", summary: "print what a run and its ranks wrote",
	details: `Prints the log of the newest run of a job (or of the run of a folder): its
progress, what failed and why, and each line of its ranks with the rank's number.
With -f it goes on until the run ends; Ctrl-C leaves.

examples:
  ddp logs -f jobs/mingpt.toml
  ddp logs jobs/mingpt.toml | grep '^\[rank 3\]'`,
	run: runLogs,
}

func runAttach(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object a line on stdout instead of progress")
	f, err := in.runFolder()
	if err != nil {
		return err
	}
	sink := in.sink(f.info.Steps, *asJSON)
	code, err := f.follow(eventsFile, func(line []byte) error {
		at, e, err := observe.Parse(line)
		if err != nil {
			sink.Note(fmt.Sprintf("unreadable event: %v", err))
			return nil
		}
		sink.Emit(at, e)
		return nil
	})
	sink.Close()
	switch {
	case errors.Is(err, errLeft):
		in.note("the run goes on; `ddp stop` ends it")
		return nil
	case err != nil:
		return fmt.Errorf("attach: %w", err)
	case code != launch.ExitOK:
		return exitError{code}
	}
	return nil
}

func runLogs(in *invocation) error {
	follow := in.flags.Bool("f", false, "go on until the run ends")
	f, err := in.runFolder()
	if err != nil {
		return err
	}
	print := func(line []byte) error {
		_, err := fmt.Fprintf(in.stdout, "%s\n", line)
		return err
	}
	if *follow {
		_, err = f.follow(outputFile, print)
	} else {
		over := make(chan struct{})
		close(over)
		err = observe.Follow(context.Background(), filepath.Join(f.path, outputFile), over, print)
	}
	if err != nil && !errors.Is(err, errLeft) {
		return fmt.Errorf("logs: %w", err)
	}
	return nil
}

// errLeft says that the user has seen enough.
var errLeft = errors.New("left")

// follow reads a file of the run until the run ends, whose exit code it returns,
// or the user leaves.
func (f *runFolder) follow(name string, each func(line []byte) error) (code int, err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	over := make(chan struct{})
	var ended error
	go func() {
		defer close(over)
		var a answer
		a, ended = f.ask(ctx, question{Wait: true})
		code = a.ExitCode
	}()
	err = observe.Follow(ctx, filepath.Join(f.path, name), over, each)
	left := ctx.Err() != nil
	cancel()
	<-over
	switch {
	case left:
		return 0, errLeft
	case err != nil:
		return 0, err
	case errors.Is(ended, errNotRunning):
		return f.recordedEnd()
	}
	return code, ended
}

// recordedEnd is how a run ended that is over.
func (f *runFolder) recordedEnd() (code int, err error) {
	last, err := openRunFolder(f.path)
	if err != nil {
		return 0, err
	}
	if last.info.Ended == nil {
		return 0, errors.New("the run's launcher has died: run the job again, it goes on from its last snapshot")
	}
	return last.info.ExitCode, nil
}

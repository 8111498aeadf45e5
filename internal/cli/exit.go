package cli

import (
	"errors"
	"fmt"

	"ddp/data"
	"ddp/jobs"
	"ddp/model/train"
	"ddp/runtime/launch"
)

// usageError is the user's to mend: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// exitError ends the program with a code; what there is to say was said.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// snapshotError says that a snapshot that was asked for cannot be read: exit code 5.
type snapshotError struct{ err error }

func (e snapshotError) Error() string { return e.err.Error() }
func (e snapshotError) Unwrap() error { return e.err }

// errHelpShown ends a command after --help.
var errHelpShown = errors.New("help shown")

// exitCode maps an error to the exit codes that scripts rely on.
func exitCode(err error) int {
	var (
		usage    usageError
		exit     exitError
		problems jobs.Problems
		badData  *data.Error
		mismatch *train.MismatchError
		snap     snapshotError
		meeting  *launch.RendezvousError
	)
	switch {
	case err == nil, errors.Is(err, errHelpShown):
		return launch.ExitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &snap):
		return launch.ExitSnapshot
	case errors.As(err, &meeting):
		return launch.ExitRendezvous
	case errors.As(err, &usage), errors.As(err, &problems), errors.As(err, &badData), errors.As(err, &mismatch):
		return launch.ExitUsage
	default:
		return launch.ExitFailed
	}
}

// fail tells the user what went wrong, once, and returns the exit code.
func (c console) fail(err error) int {
	var (
		exit     exitError
		problems jobs.Problems
	)
	switch {
	case err == nil, errors.Is(err, errHelpShown), errors.As(err, &exit):
	case errors.As(err, &problems):
		for _, p := range problems {
			fmt.Fprintf(c.stderr, "ddp: %v\n", p)
		}
	default:
		fmt.Fprintf(c.stderr, "ddp: %v\n", err)
	}
	return exitCode(err)
}

// Package launch is about single processes of a job: the environment that makes
// a process a rank (rank.go), how it finds its world (connect.go) and reports
// its own failure (errorfile.go); and on the other side how such a process is
// started and watched (process.go) and how nothing of it is left behind
// (sweep.go).
package launch

import "syscall"

// Exit codes of the program that scripts may rely on.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2 // bad usage, job file or data
	ExitGaveUp     = 3 // more failures than restarts
	ExitRendezvous = 4 // the ranks or nodes did not find each other in time
	ExitSnapshot   = 5 // a snapshot was asked for and is unreadable
)

// ExitSignal is the exit code of a process that ended because of sig.
func ExitSignal(sig syscall.Signal) int { return 128 + int(sig) }

package elastic

import (
	"syscall"

	"ddp/runtime/launch"
)

// kind is what a rank's end says about the cause of a failure.
type kind string

const (
	clean  kind = "is done"        // it had nothing more to do, or stopped as asked
	guilty kind = "failed"         // by itself, or by a signal that was not ours
	victim kind = "blames a peer"  // it says so in its error file
	torn   kind = "was torn down"  // we killed it
	lost   kind = "lost its agent" // a whole node
)

// ending is how one rank, or with rank -1 one node, ended.
type ending struct {
	rank, node int
	exit       launch.Exit
	kind       kind
	permanent  bool
	crashed    bool
	afterStop  bool // it came after the ranks had been asked to stop
}

// final tells whether the exit code ends the job whatever restarts are left. A
// foreign command's codes mean nothing to us.
func (c *Control) final(e *ending) bool {
	return !c.set.OwnCode && e.exit.Signal == 0 && (e.exit.Code == launch.ExitUsage && !e.crashed || e.exit.Code == launch.ExitSnapshot)
}

// endings are those of one generation, in the order in which they became known.
type endings struct {
	list  []ending
	stuck int // processes that would not die
}

// add classifies a rank's end. killed: we had killed the generation; stopped:
// the ranks had been asked to stop.
func (e *endings) add(x Exited, killed, stopped bool) *ending {
	end := ending{rank: x.Rank, node: -1, exit: x.Exit, permanent: x.Permanent, crashed: x.Crashed, afterStop: stopped}
	asked := x.Exit.Signal == syscall.SIGTERM || x.Exit == launch.Exit{Code: launch.ExitSignal(syscall.SIGTERM)}
	switch {
	case x.Hung:
		end.kind = guilty
	case x.Exit == launch.Exit{} || stopped && (asked || x.Victim):
		end.kind = clean
	case x.Victim:
		end.kind = victim
	case killed && x.Exit.Signal == syscall.SIGKILL && !x.Report:
		end.kind = torn
	default:
		end.kind = guilty
	}
	e.list = append(e.list, end)
	return &e.list[len(e.list)-1]
}

// lost notes that a node's agent died.
func (e *endings) lost(node int) {
	e.list = append(e.list, ending{rank: -1, node: node, exit: launch.Exit{Code: launch.ExitFailed}, kind: lost})
}

// strand notes that a rank lives on in a broken world.
func (e *endings) strand(rank int) {
	e.list = append(e.list, ending{rank: rank, node: -1, exit: launch.Exit{Code: launch.ExitFailed}, kind: victim})
}

// culprit is the root cause: the earliest end that nobody else caused. If all
// blame others, it is the first who does; its message names the other. It is nil
// when nobody failed.
func (e *endings) culprit() *ending {
	for _, wanted := range [][2]kind{{guilty, lost}, {victim, victim}} {
		for i := range e.list {
			if k := e.list[i].kind; k == wanted[0] || k == wanted[1] {
				return &e.list[i]
			}
		}
	}
	return nil
}

// Package elastic runs a command once per rank on one or more nodes, watches it,
// and brings it back when it fails.
//
// The launcher (run.go) is the only one that decides. It asks a pure state
// machine (control.go) what to do at every event, and lets the nodes' agents do
// it. An agent (agent.go) starts, signals and kills the ranks of one node; the
// launcher holds the one of its own node itself and speaks with others through
// their stdin and stdout in lines of JSON (protocol.go), over ssh for another
// host (runtime/ssh).
//
// A generation is one life of the world: all ranks start together and, when one
// fails, all are killed at once and the next generation starts with a new store
// and a new secret.
//
// # Nothing is left behind
//
// Whatever dies first takes the rest with it:
//
//   - A rank ends: its process group is killed, and when the node's ranks are
//     all gone, so is everything that carries the job's mark or was orphaned.
//   - An agent dies: the kernel kills its ranks (Pdeathsig) and its guard, a
//     process that waits for nothing else (guard.go), kills what carries the mark.
//   - The launcher dies: its guard does the same on its machine, and agents
//     elsewhere read the end of their stdin.
//
// A process that cleared its environment, left its group and session, and lost
// its parent is found while its agent lives, and not by the guard.
package elastic

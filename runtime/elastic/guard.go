package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"ddp/runtime/launch"
)

// guard is a process that outlives its agent for as long as it takes to clear
// away what the agent's ranks started. It is an agent's process without ranks,
// in a session of its own.
type guard struct{ proc *launch.Process }

// startGuard starts a guard that works when this process ends, however it does.
func startGuard(o guardOrder) (*guard, error) {
	proc, err := launch.Start(launch.Command{
		Path: "/proc/self/exe", Args: []string{os.Args[0]}, Dir: "/",
		Env:      launch.Environment(os.Environ(), []string{launch.RoleVariable + "=" + launch.RoleAgent}),
		Detached: true, Control: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g := &guard{proc}
	// The pipe keeps the order until the guard gets to read it.
	if err := json.NewEncoder(proc.Control).Encode(command{Guard: &o}); err != nil {
		g.dismiss()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return g, nil
}

// dismiss ends the guard: there is nothing to clear away.
func (g *guard) dismiss() {
	g.proc.Kill()
	<-g.proc.Ended()
	<-g.proc.Drained()
	g.proc.Control.Close()
}

// serveGuard is the guard's process: it waits for the end of stdin.
func serveGuard(o guardOrder, stdin io.Reader) int {
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return launch.ExitFailed
	}
	if o.Dir != "" {
		os.RemoveAll(o.Dir)
	}
	if stuck, err := launch.Sweep(context.Background(), o.Tree); err != nil || len(stuck) > 0 {
		return launch.ExitFailed
	}
	return launch.ExitOK
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
)

var statusCommand = command{
	name: "status", args: "JOB|FOLDER [--json]", summary: "tell how a run stands: its step, its nodes and ranks",
	details: `Tells how the newest run of a job stands (or the run of a folder): its step, its
generation, its nodes and which ranks they have.

example:
  ddp status jobs/mingpt.toml

exit codes: 0 it runs, or it ended well; 1 it failed, or its launcher died; 2 no
such run`,
	run: runStatus,
}

var drainCommand = command{
	name: "drain", args: "JOB|FOLDER --node NAME", summary: "take a node out of a run at the end of a step",
	details: `Asks a run to go on without one of its nodes: at the end of the step its ranks
leave and the others share its work. The result of the run stays the same.

example:
  ddp drain jobs/cluster.toml --node b`,
	run: runDrain,
}

var stopCommand = command{
	name: "stop", args: "JOB|FOLDER [--now]", summary: "end a run after a snapshot",
	details: `Ends a run as Ctrl-C in its terminal does: after the step and a snapshot. Returns
when it has ended. Run it again to go on.

example:
  ddp stop jobs/mingpt.toml`,
	run: runStop,
}

// stated is what `ddp status --json` prints.
type stated struct {
	Running bool   `json:"running"`
	Folder  string `json:"folder"`
	runInfo
	elastic.Status
	progress
}

func runStatus(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object")
	f, err := in.runFolder()
	if err != nil {
		return err
	}
	a, err := f.ask(context.Background(), question{Status: true})
	running := err == nil
	if err != nil && !errors.Is(err, errNotRunning) {
		return err
	}
	if !running {
		if f, err = openRunFolder(f.path); err != nil { // it may have ended just now
			return err
		}
	}
	if *asJSON {
		if err := json.NewEncoder(in.stdout).Encode(stated{running, f.path, f.info, a.Status, a.Progress}); err != nil {
			return fmt.Errorf("write the status: %w", err)
		}
	} else if err := in.tellStatus(f, running, a); err != nil {
		return err
	}
	if !running && !f.endedWell() {
		return exitError{launch.ExitFailed}
	}
	return nil
}

// endedWell tells whether the run came to its end or was asked to stop.
func (f *runFolder) endedWell() bool {
	return f.info.Ended != nil && (f.info.ExitCode == launch.ExitOK || f.info.ExitCode > 128)
}

func (in *invocation) tellStatus(f *runFolder, running bool, a answer) error {
	fmt.Fprintf(in.stdout, "%s, run %s on %s, process %d, begun %s\n", f.info.Job, f.info.ID, f.info.Host, f.info.PID, f.info.Started.Local().Format(time.DateTime))
	switch {
	case running:
		fmt.Fprintf(in.stdout, "%s: step %d, loss %.4f, %.0f tokens/s, generation %d, %d ranks, %d restarts\n",
			a.Status.Phase, a.Progress.Step, a.Progress.Loss, a.Progress.TokensPerS, a.Status.Generation, a.Status.WorldSize, a.Status.Restarts)
	case f.info.Ended == nil:
		fmt.Fprintln(in.stdout, "its launcher has died: run the job again, it goes on from its last snapshot")
	default:
		fmt.Fprintf(in.stdout, "ended %s, exit code %d\n", f.info.Ended.Local().Format(time.DateTime), f.info.ExitCode)
	}
	fmt.Fprintf(in.stdout, "folder %s\n", f.path)
	if !running {
		return nil
	}
	table := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "node\thost\tranks\tstate")
	for _, n := range a.Status.Nodes {
		ranks, state := fmt.Sprint(n.Ranks), n.State
		if n.FirstRank >= 0 {
			ranks = fmt.Sprintf("%d: %d to %d", n.Ranks, n.FirstRank, n.FirstRank+n.Ranks-1)
		}
		if n.Lost != "" {
			state += ", was lost: " + n.Lost
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", n.Node, n.Host, ranks, state)
	}
	return table.Flush()
}

func runDrain(in *invocation) error {
	node := in.flags.String("node", "", "`NAME` or number of the node, as `ddp status` lists them")
	f, err := in.runFolder()
	if err != nil {
		return err
	}
	if *node == "" {
		return usageError{errors.New("drain: which node? give --node NAME (`ddp status` lists them)")}
	}
	if _, err := f.ask(context.Background(), question{Drain: *node}); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

func runStop(in *invocation) error {
	now := in.flags.Bool("now", false, "at once, without a snapshot")
	f, err := in.runFolder()
	if err != nil {
		return err
	}
	ctx := context.Background()
	times := 1
	if *now {
		times = 2 // as a second Ctrl-C
	}
	for range times {
		if _, err := f.ask(ctx, question{Signal: stopSignal}); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	}
	a, err := f.ask(ctx, question{Wait: true})
	if errors.Is(err, errNotRunning) {
		return nil // it was fast
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	fmt.Fprintf(in.stderr, "ddp: stopped after step %d, exit code %d\n", a.Progress.Step, a.ExitCode)
	return nil
}

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"
	"golang.org/x/term"

	"ddp/data"
	"ddp/jobs"
	"ddp/runtime/elastic"
	"ddp/runtime/launch"
	"ddp/runtime/observe"
	"ddp/runtime/snapshot"
)

var runCommand = command{
	name: "run", args: "JOB [--set table.key=value]... [--json] [--fresh]", summary: "train a job, resuming from its snapshots",
	details: `Trains the job that the TOML file describes, with as many ranks as it asks for.
When the job's snapshot folder holds snapshots the run continues from the newest
good one. Ctrl-C takes a snapshot and leaves; run again to go on. A second
Ctrl-C leaves at once. SIGUSR1 takes a snapshot and goes on.

examples:
  ddp run jobs/mingpt.toml
  ddp run jobs/mingpt.toml --set train.max_steps=2000 --set cluster.ranks=4
  ddp run jobs/mingpt.toml --json | jq 'select(.event == "eval")'

exit codes: 0 done; 1 failed; 2 bad usage, job file or data; 3 gave up after the
allowed restarts; 5 a snapshot is unreadable; 128+N ended by signal N after a
clean stop with a snapshot`,
	run: runRun,
}

func runRun(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object a line on stdout instead of progress")
	fresh := in.flags.Bool("fresh", false, "start anew; older snapshots are moved aside, never deleted")
	job, err := in.job()
	if err != nil {
		return err
	}
	set, err := openData(job) // bad data is one line here, before any process or folder is made
	if err != nil {
		return err
	}
	if _, err := forcedISA(); err != nil {
		return err
	}
	if err := prepareSnapshots(job, set, *fresh, in.note); err != nil {
		return err
	}
	sink := in.sink(maxSteps(job, set), *asJSON)
	err = runJob(context.Background(), job, sink)
	sink.Close()
	if err != nil || *asJSON {
		return err
	}
	return in.closingSample(job)
}

// note tells the user something that is no error.
func (in *invocation) note(message string) { fmt.Fprintf(in.stderr, "ddp: %s\n", message) }

// sink is where the run's events go.
func (in *invocation) sink(steps int, asJSON bool) observe.Sink {
	if asJSON {
		return observe.NewJSON(in.stdout, in.stderr)
	}
	tty, width := false, func() int { return 80 }
	if f, ok := in.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		tty = true
		width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return w
		}
	}
	return observe.NewTerminal(in.stderr, tty, tty && os.Getenv("NO_COLOR") == "", width, steps)
}

// prepareSnapshots sees to it that what the run would continue from belongs to
// this job, or moves it aside.
func prepareSnapshots(job *jobs.Job, set *data.Set, fresh bool, note func(string)) error {
	dir := job.Snapshot.Dir
	if dir == "" {
		return nil
	}
	if fresh {
		aside, err := snapshot.Archive(dir)
		if err != nil {
			return fmt.Errorf("move older snapshots aside: %w", err)
		}
		if aside != "" {
			note("older snapshots are in " + aside)
		}
		return nil
	}
	return continues(job, set, dir, note)
}

// runJob launches the ranks and sees them through to the end.
func runJob(ctx context.Context, job *jobs.Job, sink observe.Sink) error {
	payload, err := trainPayload(job)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	signals, stop := notify()
	defer stop()
	watch := newWatch(sink)
	res, err := elastic.Run(ctx, elastic.Spec{
		RunID: id, Nodes: nodes(job), Payload: payload, LogDir: logDir(job, id),
		Live: job.Recovery.Mode == "live", HangTimeout: job.Recovery.HangTimeout,
		MinNodes: min(job.Cluster.MinNodes, max(1, len(job.Cluster.Nodes))), MaxNodes: job.Cluster.MaxNodes, MaxRanks: job.Train.Shards,
		MaxRestarts: job.Recovery.MaxRestarts, Window: job.Recovery.Window, Grace: job.Recovery.Grace,
		Signals: signals, OnLine: watch.line, OnEvent: watch.event, OnFailure: watch.failure, OnMember: watch.member,
	})
	if err != nil {
		return err
	}
	return verdict(res)
}

// verdict turns the result into an exit code; the failure itself was shown when it happened.
func verdict(res elastic.Result) error {
	if res.ExitCode == launch.ExitOK {
		return nil
	}
	return exitError{res.ExitCode}
}

// nodes are the job's machines, or this one.
func nodes(job *jobs.Job) []elastic.Node {
	if len(job.Cluster.Nodes) == 0 {
		return []elastic.Node{{Ranks: localRanks(job.Cluster.Ranks, job.Train.Shards)}}
	}
	var out []elastic.Node
	for _, n := range job.Cluster.Nodes {
		out = append(out, elastic.Node{Host: n.Host, Ranks: localRanks(job.Cluster.RanksOf(n), job.Train.Shards)})
	}
	return out
}

// localRanks is the number of ranks of a machine; 0 asks for one a pair of
// cores, but no more than there are shards to compute.
func localRanks(asked, shards int) int {
	if asked > 0 {
		return asked
	}
	return min(max(1, usableCores()/2), shards)
}

// logDir is where the ranks' output is kept: beside the snapshots, a folder a run.
func logDir(job *jobs.Job, id string) string {
	if job.Snapshot.Dir == "" {
		return filepath.Join(os.TempDir(), "ddp-"+id)
	}
	return filepath.Join(job.Snapshot.Dir, "logs", id)
}

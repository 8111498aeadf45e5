package cli

import (
	"context"
	"fmt"
	"os"

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
	name: "run", args: "JOB [--set table.key=value]... [--json] [--fresh] [--detach]", summary: "train a job, resuming from its snapshots",
	details: `Trains the job that the TOML file describes, with as many ranks as it asks for.
When the job's snapshot folder holds snapshots the run continues from the newest
good one. Ctrl-C takes a snapshot and leaves; run again to go on. A second
Ctrl-C leaves at once. SIGUSR1 takes a snapshot and goes on.

With --detach the run goes on without this terminal: attach, status, logs and
stop reach it.

examples:
  ddp run jobs/mingpt.toml
  ddp run jobs/mingpt.toml --set train.max_steps=2000 --set cluster.ranks=4
  ddp run jobs/mingpt.toml --json | jq 'select(.event == "eval")'
  ddp run jobs/mingpt.toml --detach && ddp attach jobs/mingpt.toml

exit codes: 0 done; 1 failed; 2 bad usage, job file or data; 3 gave up after the
allowed restarts; 4 nodes were not there in time; 5 a snapshot is unreadable;
128+N ended by signal N after a clean stop with a snapshot`,
	run: runRun,
}

func runRun(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object a line on stdout instead of progress")
	fresh := in.flags.Bool("fresh", false, "start anew; older snapshots are moved aside, never deleted")
	detached := in.flags.Bool("detach", false, "let the run go on without this terminal")
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
	child := detachedChild()
	if *detached && child == nil {
		return in.detach()
	}
	release, err := claim(job)
	if err != nil {
		return err
	}
	defer release()
	if err := prepareSnapshots(job, set, *fresh, in.note); err != nil {
		return err
	}
	id := uuid.NewString()
	folder, err := newRunFolder(job, id, maxSteps(job, set))
	if err != nil {
		return err
	}
	err = in.trainIn(folder, job, *asJSON, child)
	if err != nil || *asJSON || child != nil {
		return err
	}
	return in.closingSample(job)
}

// trainIn runs the job and leaves all that happens in its folder; a temporary
// one goes when there was nothing wrong.
func (in *invocation) trainIn(folder *runFolder, job *jobs.Job, asJSON bool, child *parentLine) error {
	sinks, err := folder.sinks()
	if err != nil {
		return err
	}
	if child == nil {
		sinks = append(sinks, in.sink(folder.info.Steps, asJSON))
	}
	sink := observe.NewTee(sinks...)
	err = runJob(folder, job, sink, child)
	sink.Close()
	if noted := folder.end(exitCode(err)); err == nil {
		err = noted
	}
	if err == nil && logsOf(job) == "" {
		return os.RemoveAll(folder.path)
	}
	return err
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
func runJob(folder *runFolder, job *jobs.Job, sink observe.Sink, child *parentLine) (err error) {
	payload, err := trainPayload(job)
	if err != nil {
		return err
	}
	env, dir, err := surroundings(job)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	door, err := openDoor(ctx, folder, job, sink.Note)
	if err != nil {
		cancel()
		return err
	}
	watch := newWatch(sink)
	desk, err := openDesk(folder.info.ID, watch.progress)
	if err != nil {
		cancel()
		door.close()
		return err
	}
	finder := startFinder(ctx, job, desk.requests, sink.Note)
	signals, stop := notify()
	defer func() {
		stop()
		cancel()
		finder.wait()
		door.close()
		desk.close(exitCode(err))
	}()
	child.ready(folder)
	res, err := elastic.Run(ctx, elastic.Spec{
		RunID: folder.info.ID, Nodes: nodes(job), Payload: payload, Env: env, Dir: dir, LogDir: folder.path,
		Live: job.Recovery.Mode == "live", HangTimeout: job.Recovery.HangTimeout,
		MinNodes: minNodes(job), MaxNodes: job.Cluster.MaxNodes, MaxRanks: job.Train.Shards,
		MaxRestarts: job.Recovery.MaxRestarts, Window: job.Recovery.Window, Grace: job.Recovery.Grace,
		Signals: signals, Requests: desk.requests, Guests: door.guests,
		OnLine: watch.line, OnEvent: watch.event, OnFailure: watch.failure, OnMember: watch.member, OnNote: sink.Note,
	})
	if err != nil {
		return err
	}
	return verdict(res)
}

// surroundings are what ranks on other hosts are to find as it is here.
func surroundings(job *jobs.Job) (env []string, dir string, err error) {
	if len(job.Cluster.Nodes) == 0 && job.Cluster.Discover == "" {
		return nil, "", nil
	}
	dir, err = os.Getwd()
	if err != nil {
		return nil, "", fmt.Errorf("find the working directory: %w", err)
	}
	return launch.Portable(os.Environ()), dir, nil
}

// minNodes is how many nodes training needs; more than are listed can only come
// by themselves.
func minNodes(job *jobs.Job) int {
	if job.Cluster.Listen != "" {
		return job.Cluster.MinNodes
	}
	return min(job.Cluster.MinNodes, max(1, len(job.Cluster.Nodes)))
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

package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"ddp/data"
	"ddp/jobs"
	"ddp/model"
	"ddp/model/train"
	"ddp/spmd"
)

var checkCommand = command{
	name: "check", args: "JOB [--set table.key=value]... [--json]", summary: "say what a job would run, without running it",
	details: `Reads the job file and its data, reports everything that is wrong with them, and
prints what would run: world, model, memory of a rank, tokens of a step, size of
a snapshot.

example:
  ddp check jobs/mingpt.toml --set model.preset=\"gpt2\"`,
	run: runCheck,
}

// forecast is what `ddp check` says, one field a line.
type forecast struct {
	Job           string  `json:"job"`
	World         int     `json:"world_size"`
	Nodes         int     `json:"nodes"`
	Threads       int     `json:"threads_per_rank"`
	Parameters    int     `json:"parameters"`
	Vocabulary    int     `json:"vocabulary"`
	BlockSize     int     `json:"block_size"`
	TokensPerStep int     `json:"tokens_per_step"`
	Steps         int     `json:"steps"`
	StepsPerEpoch float64 `json:"steps_per_epoch"`
	MemoryPerRank int64   `json:"memory_per_rank_bytes"`
	SnapshotBytes int64   `json:"snapshot_bytes"`
	FLOPsPerStep  float64 `json:"flops_per_step"`
}

func runCheck(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object")
	job, err := in.job()
	if err != nil {
		return err
	}
	set, err := openData(job)
	if err != nil {
		return err
	}
	if _, err := forcedISA(); err != nil {
		return err
	}
	f, plan := forecastOf(job, set)
	if *asJSON {
		return json.NewEncoder(in.stdout).Encode(f)
	}
	return in.showForecast(job, f, plan)
}

// forecastOf computes what would run.
func forecastOf(job *jobs.Job, set *data.Set) (forecast, model.MemoryPlan) {
	machines := nodes(job)
	world, most := 0, 0
	for _, n := range machines {
		world += n.Ranks
		most = max(most, n.Ranks)
	}
	c := job.ModelConfig(set.VocabSize())
	depth := 1
	for rank := range world {
		lo, hi := spmd.Shards(job.Train.Shards, world, rank)
		depth = max(depth, train.Depth(lo, hi))
	}
	plan := model.PlanMemory(c, job.Train.Batch/job.Train.Shards, depth)
	memory := plan.Total()
	if job.Snapshot.Dir != "" {
		memory += snapshotBytes(c) / int64(world) // a rank stages its share
	}
	tokens := job.Train.Batch * c.BlockSize
	return forecast{Job: job.Name, World: world, Nodes: len(machines), Threads: threads(job, most),
		Parameters: c.NumParams(), Vocabulary: c.VocabSize, BlockSize: c.BlockSize,
		TokensPerStep: tokens, Steps: maxSteps(job, set), StepsPerEpoch: float64(set.TrainLen()) / float64(job.Train.Batch),
		MemoryPerRank: memory, SnapshotBytes: snapshotBytes(c), FLOPsPerStep: c.FLOPsPerToken() * float64(tokens)}, plan
}

// snapshotBytes is the size of parameters and two moments, without headers.
func snapshotBytes(c model.Config) int64 { return 3 * 4 * int64(c.NumParams()) }

func (in *invocation) showForecast(job *jobs.Job, f forecast, plan model.MemoryPlan) error {
	t := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	m := job.Model
	row("job", "%s", f.Job)
	row("world", "%d ranks on %d nodes, %d threads each", f.World, f.Nodes, f.Threads)
	row("model", "%d layers, %d heads, %d wide, block %d, vocabulary %d: %.2f M parameters",
		m.Layers, m.Heads, m.Embed, f.BlockSize, f.Vocabulary, float64(f.Parameters)/1e6)
	row("step", "%d sequences in %d shards, %d tokens, %.1f GFLOP", job.Train.Batch, job.Train.Shards, f.TokensPerStep, f.FLOPsPerStep/1e9)
	row("run", "%d steps, %.1f steps an epoch", f.Steps, f.StepsPerEpoch)
	row("memory of a rank", "%s: parameters %s, gradients %s, optimizer %s, activations %s, snapshot staging %s", size(f.MemoryPerRank),
		size(plan.Parameters), size(plan.Gradients), size(plan.Optimizer), size(plan.Activations), size(f.MemoryPerRank-plan.Total()))
	if job.Snapshot.Dir == "" {
		row("snapshots", "none")
	} else {
		row("snapshots", "%s each, newest %d kept, in %s", size(f.SnapshotBytes), job.Snapshot.Keep, job.Snapshot.Dir)
	}
	return t.Flush()
}

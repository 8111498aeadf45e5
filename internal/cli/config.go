package cli

import (
	"fmt"

	"ddp/data"
	"ddp/jobs"
	"ddp/model"
	"ddp/model/train"
)

// openData opens what the job trains on.
func openData(job *jobs.Job) (*data.Set, error) { return data.Open(job.DataConfig()) }

// trainConfig is the job as the training loop wants it.
func trainConfig(job *jobs.Job, set *data.Set) (train.Config, error) {
	identity, err := identity(job, set)
	if err != nil {
		return train.Config{}, err
	}
	steps := maxSteps(job, set)
	o, s := job.Optimizer, job.Snapshot
	return train.Config{
		Model: job.ModelConfig(set.VocabSize()),
		Optimizer: model.OptimizerConfig{Betas: o.Betas, Eps: o.Eps, WeightDecay: o.WeightDecay,
			Decay: o.Decay, GradClip: o.GradClip},
		Schedule: model.Schedule{Kind: o.Schedule, LR: o.LR, MinLR: o.MinLR, Warmup: o.WarmupSteps,
			Total: decaySteps(job, steps)},
		Batch: job.Train.Batch, Shards: job.Train.Shards, MaxSteps: steps, Seed: job.Train.Seed,
		EvalEvery: job.Train.EvalEvery, EvalWindows: job.Train.EvalWindows,
		Snapshot: train.Cadence{Dir: s.Dir, EverySteps: s.EverySteps, EveryEpochs: s.EveryEpochs, Every: s.Every,
			Keep: s.Keep, KeepBest: s.Best},
		Identity: identity,
	}, nil
}

// maxSteps is the length of the run in steps.
func maxSteps(job *jobs.Job, set *data.Set) int {
	if job.Train.MaxEpochs > 0 {
		return int(data.NewSampler(set.TrainLen(), job.Train.Seed).Steps(job.Train.MaxEpochs, job.Train.Batch))
	}
	return job.Train.MaxSteps
}

func decaySteps(job *jobs.Job, steps int) int {
	if job.Optimizer.DecaySteps > 0 {
		return job.Optimizer.DecaySteps
	}
	return steps
}

// identity is what snapshots say about the job.
func identity(job *jobs.Job, set *data.Set) (train.Identity, error) {
	text, err := job.Encode()
	if err != nil {
		return train.Identity{}, fmt.Errorf("encode the job: %w", err)
	}
	id := train.Identity{JobHash: job.Hash(), ModelHash: job.ModelHash(), Job: text, Data: set.Digest()}
	if set.Tokenizer != nil {
		if id.Tokenizer, err = set.Tokenizer.Marshal(); err != nil {
			return train.Identity{}, fmt.Errorf("encode the tokenizer: %w", err)
		}
	}
	return id, nil
}

package train

import (
	"context"
	"fmt"
	"math"

	"ddp/data"
	"ddp/model"
	"ddp/model/compute/timed"
	"ddp/spmd"
)

// stepResult is what all ranks know after a step.
type stepResult struct {
	loss, lr, norm float64
	vote           vote
}

// trainStep computes this rank's shards of batch and updates the parameters,
// the same way on every rank.
func (t *Trainer) trainStep(ctx context.Context, batch *data.Batch, ask vote) (stepResult, error) {
	t.gpt.HaltOn(ctx.Done())
	losses, counts := t.backward(ctx, batch)
	if ctx.Err() != nil {
		return stepResult{}, fmt.Errorf("step %d: %w", t.step+1, context.Cause(ctx)) // the gradient may be half one
	}
	end := t.cfg.Spans.Begin(timed.WaitForPeers)
	agreed, err := t.agree(ctx, losses, counts, ask)
	if err != nil {
		return stepResult{}, err
	}
	grads, err := t.buckets.wait(ctx)
	end()
	if err != nil {
		return stepResult{}, err
	}
	tokens := int(spmd.TreeSum(agreed.counts))
	if tokens == 0 {
		return stepResult{}, fmt.Errorf("step %d has no target to learn from: every position of its batch is masked", t.step+1)
	}
	res := stepResult{loss: spmd.TreeSum(agreed.losses) / float64(tokens), lr: t.cfg.Schedule.At(t.step), vote: agreed.vote}
	if math.IsNaN(res.loss) || math.IsInf(res.loss, 0) {
		return res, &DivergedError{Step: t.step + 1, What: fmt.Sprintf("the loss is %v", res.loss)}
	}
	if res.norm, err = t.opt.Step(t.gpt.Params(), grads, res.lr, tokens); err != nil {
		return res, &DivergedError{Step: t.step + 1, What: err.Error()}
	}
	t.step++
	t.progress.Add(1)
	return res, nil
}

// backward runs, while ctx lasts, this rank's shards one after the other and hands finished
// ranges of the last one to the buckets. Index i of its results is shard i of
// the step; other ranks' shards stay 0.
func (t *Trainer) backward(ctx context.Context, batch *data.Batch) (losses, counts []float64) {
	losses, counts = make([]float64, t.cfg.Shards), make([]float64, t.cfg.Shards)
	perShard := t.cfg.Batch / t.cfg.Shards
	symbols := perShard * t.cfg.Model.BlockSize
	t.partials.begin()
	for shard := t.partials.lo; shard < t.partials.hi && ctx.Err() == nil; shard++ {
		at := (shard - t.partials.lo) * symbols
		x, y := batch.X[at:at+symbols], batch.Y[at:at+symbols]
		grads, merge := t.partials.push(shard)
		last := shard == t.partials.hi-1
		draw := model.Draw{Seed: t.cfg.Seed, Step: uint32(t.step), FirstSample: uint32(shard * perShard)}
		sum, count := t.gpt.LossGrad(x, y, perShard, grads, draw, func(lo, hi int) {
			merge(lo, hi)
			if last {
				t.buckets.ready(lo, hi)
			}
		})
		losses[shard], counts[shard] = sum, float64(count)
		t.progress.Add(1)
	}
	return losses, counts
}

// DivergedError ends a run whose numbers are no longer finite. Running the same
// steps again would give the same numbers, so it is not worth a restart.
type DivergedError struct {
	Step int
	What string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("step %d diverged: %s (lower optimizer.lr or optimizer.grad_clip; snapshots hold only finite steps)", e.Step, e.What)
}

// Permanent tells the launcher that a restart would end the same way.
func (e *DivergedError) Permanent() bool { return true }

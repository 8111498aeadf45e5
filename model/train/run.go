package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"ddp/data"
	"ddp/runtime/observe"
	"ddp/runtime/snapshot"
)

// Run trains until MaxSteps or until control asks to stop. All ranks call it
// together and get the same Outcome. An error names the step it happened in.
func (t *Trainer) Run(ctx context.Context, control *Control) (Outcome, error) {
	loader := t.newLoader()
	defer loader.Close()
	cadence := newCadence(t.cfg.Snapshot, t.cfg.Batch, t.set.TrainLen(), time.Now())
	stopped := false
	for t.step < t.cfg.MaxSteps && !stopped {
		batch, err := loader.Next(ctx)
		if err != nil {
			return t.outcome(false), fmt.Errorf("load batch of step %d: %w", t.step+1, err)
		}
		res, err := t.timedStep(ctx, batch, t.ask(control, cadence))
		if err != nil {
			return t.outcome(false), err
		}
		if err := t.afterStep(ctx, cadence, res.vote); err != nil {
			return t.outcome(false), err
		}
		stopped = res.vote.stop
	}
	if err := t.finish(ctx, stopped && t.step < t.cfg.MaxSteps); err != nil {
		return t.outcome(false), err
	}
	return t.outcome(stopped && t.step < t.cfg.MaxSteps), nil
}

// newLoader prefetches this rank's sequences from the step that comes next.
func (t *Trainer) newLoader() *data.Loader {
	perShard := t.cfg.Batch / t.cfg.Shards
	first, slots := t.partials.lo*perShard, (t.partials.hi-t.partials.lo)*perShard
	return data.NewLoader(t.set, t.sampler, t.cfg.Batch, first, slots, t.step)
}

// ask is this rank's vote for the coming step. Every rank hears of a request for
// a snapshot, at slightly different times; rank 0 alone asks, so that it is one.
func (t *Trainer) ask(control *Control, cadence *cadence) vote {
	wanted := control.snapshot.Swap(false) || cadence.timeIsUp(time.Now())
	return vote{stop: control.stop.Load(), snapshot: t.leads() && wanted}
}

// timedStep is trainStep with its event.
func (t *Trainer) timedStep(ctx context.Context, batch *data.Batch, ask vote) (stepResult, error) {
	began := time.Now()
	res, err := t.trainStep(ctx, batch, ask)
	if err != nil {
		return res, err
	}
	took := time.Since(began)
	t.loss = res.loss
	t.trainTime += took
	t.trainedSteps++
	if t.leads() {
		tokens := float64(t.cfg.Batch * t.cfg.Model.BlockSize)
		t.emit(observe.Step{Step: t.step, Epoch: batch.Epoch, Loss: res.loss, LR: res.lr, GradNorm: res.norm,
			TokensPerS: tokens / took.Seconds(), StepMS: ms(took), WorldSize: t.world.Size()})
	}
	return res, nil
}

// afterStep evaluates and takes a snapshot when they are due. The evaluation
// comes first, so that the snapshot knows its validation loss.
func (t *Trainer) afterStep(ctx context.Context, cadence *cadence, v vote) error {
	if t.cfg.EvalEvery > 0 && t.step%t.cfg.EvalEvery == 0 && t.step < t.cfg.MaxSteps {
		if err := t.report(ctx); err != nil {
			return err
		}
	}
	if t.saver == nil || t.step == t.cfg.MaxSteps {
		return nil // finish takes the last one
	}
	if v.snapshot || v.stop || cadence.stepDue(t.step) {
		cadence.taken(time.Now())
		return t.saver.save(ctx)
	}
	return nil
}

// report evaluates and tells the result. Without held-out data it does nothing.
func (t *Trainer) report(ctx context.Context) error {
	if t.set.ValLen() == 0 {
		return nil
	}
	loss, err := t.evaluate(ctx)
	if err != nil {
		return err
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return &DivergedError{Step: t.step, What: fmt.Sprintf("the validation loss is %v", loss)}
	}
	t.valLoss = &loss
	accuracy, examined, err := t.examine(ctx)
	if err != nil {
		return err
	}
	if t.leads() {
		e := observe.Eval{Step: t.step, ValLoss: loss}
		if examined {
			e.Accuracy = &accuracy
		}
		t.emit(e)
	}
	return nil
}

// finish ends a run: the last evaluation unless it was stopped, the last
// snapshot, and the background writer.
func (t *Trainer) finish(ctx context.Context, stopped bool) error {
	if !stopped {
		if err := t.report(ctx); err != nil {
			return err
		}
	}
	if t.saver == nil {
		return nil
	}
	if !stopped && t.step > t.saver.lastStep {
		if err := t.saver.save(ctx); err != nil {
			return err
		}
	}
	return t.saver.wait(ctx)
}

func (t *Trainer) outcome(stopped bool) Outcome {
	o := Outcome{Step: t.step, Stopped: stopped, Loss: t.loss, ValLoss: t.valLoss,
		ParamsSHA256: snapshot.ParamsSHA256(t.paramTensors())}
	if t.trainTime > 0 {
		o.TokensPerS = float64(t.trainedSteps*t.cfg.Batch*t.cfg.Model.BlockSize) / t.trainTime.Seconds()
	}
	return o
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

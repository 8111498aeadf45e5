package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"ddp/data"
	"ddp/model/compute/timed"
	"ddp/runtime/observe"
	"ddp/runtime/snapshot"
)

// Run trains until MaxSteps or until control asks to stop or to pause. All ranks
// call it together and get the same Outcome. An error names the step it
// happened in; after one of the world's, the state is that of the last completed
// step, and the Trainer may Leave and Enter another world.
func (t *Trainer) Run(ctx context.Context, control *Control) (Outcome, error) {
	loader := t.newLoader()
	defer loader.Close()
	if t.untold {
		t.tellStep(0)
		t.untold = false
	}
	if err := t.settle(ctx); err != nil {
		return Outcome{}, err
	}
	stopped, paused := t.last.stop, false
	for t.step < t.cfg.MaxSteps && !stopped && !paused {
		end := t.cfg.Spans.Begin(timed.WaitForData)
		batch, err := loader.Next(ctx)
		end()
		if err != nil {
			return Outcome{}, fmt.Errorf("load batch of step %d: %w", t.step+1, err)
		}
		agreed, err := t.timedStep(ctx, batch, t.ask(control))
		if err != nil {
			return Outcome{}, err
		}
		if err := t.settle(ctx); err != nil {
			return Outcome{}, err
		}
		stopped, paused = agreed.stop, agreed.pause
	}
	stopped = stopped && t.step < t.cfg.MaxSteps
	if paused && !stopped && t.step < t.cfg.MaxSteps {
		return Outcome{Step: t.step, Paused: true}, nil
	}
	if err := t.finish(ctx, stopped); err != nil {
		return Outcome{}, err
	}
	return t.outcome(stopped), nil
}

// newLoader prefetches this rank's sequences from the step that comes next.
func (t *Trainer) newLoader() *data.Loader {
	perShard := t.cfg.Batch / t.cfg.Shards
	first, slots := t.partials.lo*perShard, (t.partials.hi-t.partials.lo)*perShard
	return data.NewLoader(t.set, t.sampler, t.cfg.Batch, first, slots, t.step)
}

// ask is this rank's vote for the coming step. Every rank hears of a request for
// a snapshot, at slightly different times; rank 0 alone asks, so that it is one.
func (t *Trainer) ask(control *Control) vote {
	wanted := control.snapshot.Swap(false) || t.cadence.timeIsUp(time.Now()) || t.last.saved == owed
	return vote{stop: control.stop.Load(), snapshot: t.leads() && wanted, pause: control.pause.Load()}
}

// timedStep is trainStep with its event.
func (t *Trainer) timedStep(ctx context.Context, batch *data.Batch, ask vote) (vote, error) {
	began := time.Now()
	end := t.cfg.Spans.Begin(timed.Step)
	res, err := t.trainStep(ctx, batch, ask)
	end()
	if err != nil {
		if ask.snapshot && t.last.saved != owed {
			t.last.saved = owed // the request is still to be met
		}
		return res.vote, err
	}
	took := time.Since(began)
	t.last = standing{saved: t.last.saved, epoch: batch.Epoch, loss: res.loss, lr: res.lr, norm: res.norm,
		stop: res.vote.stop, save: res.vote.snapshot}
	t.trainTime += took
	t.trainedSteps++
	if t.leads() {
		t.tellStep(took.Seconds())
	}
	return res.vote, nil
}

// settle does what follows a step, unless it was done: it evaluates and takes a
// snapshot when they are due. The evaluation comes first, so that the snapshot
// knows its validation loss.
func (t *Trainer) settle(ctx context.Context) error {
	if t.last.settled || t.step == t.cfg.MaxSteps { // finish does what follows the last one
		return nil
	}
	if t.cfg.EvalEvery > 0 && t.step%t.cfg.EvalEvery == 0 {
		if err := t.report(ctx); err != nil {
			return err
		}
	}
	if t.saver != nil && (t.last.save || t.last.stop || t.cadence.stepDue(t.step)) {
		t.cadence.taken(time.Now())
		if err := t.saver.save(ctx); err != nil {
			return err
		}
	}
	t.last.settled = true
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
	if !stopped && t.step > t.last.saved {
		if err := t.saver.save(ctx); err != nil {
			return err
		}
	}
	return t.saver.wait(ctx)
}

func (t *Trainer) outcome(stopped bool) Outcome {
	o := Outcome{Step: t.step, Stopped: stopped, Loss: t.last.loss, ValLoss: t.valLoss,
		ParamsSHA256: snapshot.ParamsSHA256(t.paramTensors())}
	if t.trainTime > 0 {
		o.TokensPerS = float64(t.trainedSteps*t.cfg.Batch*t.cfg.Model.BlockSize) / t.trainTime.Seconds()
	}
	return o
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

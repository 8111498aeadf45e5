package train

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"ddp/model"
	"ddp/model/compute"
	"ddp/runtime/snapshot"
	"ddp/spmd"
)

// Resume is the snapshot that a run continues from.
type Resume struct {
	snap *snapshot.Snapshot
}

// Step is the number of optimizer steps that the snapshot holds.
func (r *Resume) Step() int { return r.snap.Step }

// Path is the snapshot's folder.
func (r *Resume) Path() string { return r.snap.Path }

// ISA is the instruction set that computed the snapshot.
func (r *Resume) ISA() string { return r.snap.Meta.ISA }

// FindResume picks the newest good snapshot under dir; rank 0 verifies and all
// ranks follow it. It is nil when there is none. bad tells rank 0 which
// snapshots were passed over and why.
func FindResume(ctx context.Context, w *spmd.World, dir string) (r *Resume, bad []snapshot.Problem, err error) {
	var choice struct{ Path, Err string }
	if w.Rank() == 0 {
		var snap *snapshot.Snapshot
		snap, bad, err = snapshot.Newest(dir)
		switch {
		case err != nil:
			choice.Err = err.Error()
		case snap != nil:
			choice.Path = snap.Path
		}
	}
	text, err := json.Marshal(choice)
	if err != nil {
		return nil, bad, err
	}
	if text, err = spmd.BroadcastBytes(ctx, w, text, 0); err != nil {
		return nil, bad, fmt.Errorf("agree on a snapshot: %w", err)
	}
	if err := json.Unmarshal(text, &choice); err != nil {
		return nil, bad, fmt.Errorf("agree on a snapshot: %w", err)
	}
	if choice.Err != "" {
		return nil, bad, fmt.Errorf("look for snapshots: %s", choice.Err)
	}
	if choice.Path == "" {
		return nil, bad, nil
	}
	snap, err := snapshot.Open(choice.Path)
	if err != nil {
		return nil, bad, fmt.Errorf("open snapshot: %w", err)
	}
	return &Resume{snap}, bad, nil
}

// MismatchError says that a snapshot belongs to another run.
type MismatchError struct{ Path, What string }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("snapshot %s: %s (use --fresh to start anew, or another snapshot.dir)", e.Path, e.What)
}

// load takes parameters, moments and step from r.
func (t *Trainer) load(r *Resume) error {
	if err := t.sameRun(r.snap); err != nil {
		return err
	}
	if err := r.snap.Load(modelFile, t.modelTensors()); err != nil {
		return fmt.Errorf("load model: %w", err)
	}
	if err := r.snap.Load(optimizerFile, t.momentTensors()); err != nil {
		return fmt.Errorf("load optimizer: %w", err)
	}
	t.step = r.snap.Meta.Step
	t.opt.SetSteps(t.step)
	t.valLoss = r.snap.Meta.ValLoss
	saved, err := ReadSaved(r.snap.Meta)
	if err != nil {
		return &MismatchError{r.snap.Path, err.Error()}
	}
	t.last = standing{settled: true, saved: t.step, epoch: r.snap.Meta.Epoch, loss: math.NaN()}
	if saved.Loss != nil {
		t.last.loss = *saved.Loss
	}
	return nil
}

// sameRun checks what would silently spoil the run if it differed.
func (t *Trainer) sameRun(snap *snapshot.Snapshot) error {
	if snap.Meta.ModelHash != t.cfg.Identity.ModelHash {
		return &MismatchError{snap.Path, "holds another model than the job describes"}
	}
	saved, err := ReadSaved(snap.Meta)
	if err != nil {
		return &MismatchError{snap.Path, err.Error()}
	}
	if err := saved.SameData(snap.Path, t.cfg.Identity.Data); err != nil {
		return err
	}
	if t.cfg.Identity.Tokenizer == nil {
		return nil
	}
	tokenizer, err := snap.Blob(tokenizerFile)
	if err != nil {
		return fmt.Errorf("read the snapshot's tokenizer: %w", err)
	}
	if !bytes.Equal(tokenizer, t.cfg.Identity.Tokenizer) {
		return &MismatchError{snap.Path, "was trained with another tokenizer"}
	}
	return nil
}

// OpenModel builds the model that a snapshot holds, for sequences one at a time.
func OpenModel(snap *snapshot.Snapshot, b compute.Backend) (*model.GPT, error) {
	text, err := snap.Blob(configFile)
	if err != nil {
		return nil, fmt.Errorf("read the model's sizes: %w", err)
	}
	c, err := modelConfig(text)
	if err != nil {
		return nil, err
	}
	g, err := model.New(c, b, 1)
	if err != nil {
		return nil, fmt.Errorf("build model: %w", err)
	}
	if err := snap.Load(modelFile, tensors(c, "", g.Params())); err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	return g, nil
}

// Tokenizer is the tokenizer that a snapshot was trained with; nil when its
// data had none.
func Tokenizer(snap *snapshot.Snapshot) ([]byte, error) {
	for _, name := range snap.Files() {
		if name == tokenizerFile {
			return snap.Blob(tokenizerFile)
		}
	}
	return nil, nil
}

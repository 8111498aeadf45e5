package train

import (
	"encoding/json"
	"fmt"

	"ddp/model"
	"ddp/model/compute"
	"ddp/runtime/snapshot"
)

// Files of a snapshot's folder.
const (
	modelFile     = "model.safetensors"     // Hugging Face GPT-2 names
	optimizerFile = "optimizer.safetensors" // "m." and "v." before those names
	configFile    = "config.json"           // transformers' GPT2Config
	tokenizerFile = "tokenizer.json"
)

// tensors views a flat buffer as named tensors.
func tensors(c model.Config, prefix string, flat compute.Buffer) []snapshot.Tensor {
	host := flat.Host()
	var out []snapshot.Tensor
	for _, p := range c.Params() {
		out = append(out, snapshot.Tensor{Name: prefix + p.Name, Shape: p.Shape, Data: host[p.Offset : p.Offset+p.Len]})
	}
	return out
}

// paramTensors are the parameters that the model has, for hashing.
func (t *Trainer) paramTensors() []snapshot.Tensor { return tensors(t.cfg.Model, "", t.gpt.Params()) }

// modelTensors are the parameters as GPT-2 readers expect them: a model without
// biases is written with zero ones.
func (t *Trainer) modelTensors() []snapshot.Tensor {
	out := t.paramTensors()
	if t.cfg.Model.Bias {
		return out
	}
	have := map[string]bool{}
	for _, x := range out {
		have[x.Name] = true
	}
	biased := t.cfg.Model
	biased.Bias = true
	for _, p := range biased.Params() {
		if !have[p.Name] {
			out = append(out, snapshot.Tensor{Name: p.Name, Shape: p.Shape, Data: make([]float32, p.Len)})
		}
	}
	return out
}

// momentTensors are AdamW's two moments of every parameter.
func (t *Trainer) momentTensors() []snapshot.Tensor {
	m, v := t.opt.Moments()
	return append(tensors(t.cfg.Model, "m.", m), tensors(t.cfg.Model, "v.", v)...)
}

// Saved is what a snapshot of ours says beyond its Meta's own fields: its Extra.
type Saved struct {
	Job  json.RawMessage `json:"job"`            // as in Identity
	Data string          `json:"data"`           // as in Identity
	Loss *float64        `json:"loss,omitempty"` // of the last step
}

// ReadSaved decodes a snapshot's Extra.
func ReadSaved(m snapshot.Meta) (Saved, error) {
	var s Saved
	if err := json.Unmarshal(m.Extra, &s); err != nil {
		return s, fmt.Errorf("unreadable job description: %w", err)
	}
	return s, nil
}

// SameData is a *MismatchError when the data have changed since the snapshot at path.
func (s Saved) SameData(path, fingerprint string) error {
	if s.Data != fingerprint {
		return &MismatchError{path, "was trained on other data: the text that data.path names has changed"}
	}
	return nil
}

package train

import (
	"encoding/json"
	"fmt"

	"ddp/model"
	"ddp/model/compute"
)

// gpt2Config is transformers' GPT2Config, as far as a GPT of ours needs it.
type gpt2Config struct {
	ModelType     string   `json:"model_type"`
	Architectures []string `json:"architectures"`
	VocabSize     int      `json:"vocab_size"`
	Positions     int      `json:"n_positions"`
	Context       int      `json:"n_ctx"`
	Embed         int      `json:"n_embd"`
	Layers        int      `json:"n_layer"`
	Heads         int      `json:"n_head"`
	Inner         *int     `json:"n_inner"`
	Activation    string   `json:"activation_function"`
	Epsilon       float64  `json:"layer_norm_epsilon"`
	InitRange     float64  `json:"initializer_range"`
	EmbdDrop      float64  `json:"embd_pdrop"`
	AttnDrop      float64  `json:"attn_pdrop"`
	ResidDrop     float64  `json:"resid_pdrop"`
	Tied          bool     `json:"tie_word_embeddings"`
	BOS           int      `json:"bos_token_id"`
	EOS           int      `json:"eos_token_id"`
}

// activations are GPT2Config's names of the two GELUs.
var activations = map[compute.GELU]string{compute.GELUTanh: "gelu_new", compute.GELUExact: "gelu"}

// configJSON describes the model as transformers reads it.
func configJSON(c model.Config) ([]byte, error) {
	text, err := json.MarshalIndent(gpt2Config{
		ModelType: "gpt2", Architectures: []string{"GPT2LMHeadModel"},
		VocabSize: c.VocabSize, Positions: c.BlockSize, Context: c.BlockSize,
		Embed: c.Embed, Layers: c.Layers, Heads: c.Heads, Activation: activations[c.GELU],
		Epsilon: 1e-5, InitRange: 0.02, EmbdDrop: c.EmbdDrop, AttnDrop: c.AttnDrop, ResidDrop: c.ResidDrop,
		Tied: c.Tied, BOS: c.VocabSize - 1, EOS: c.VocabSize - 1,
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("describe the model: %w", err)
	}
	return append(text, '\n'), nil
}

// modelConfig reads what configJSON wrote. Biases are always present in such a
// folder; they are zero when the model has none.
func modelConfig(text []byte) (model.Config, error) {
	var g gpt2Config
	if err := json.Unmarshal(text, &g); err != nil {
		return model.Config{}, fmt.Errorf("config.json: %w", err)
	}
	c := model.Config{VocabSize: g.VocabSize, BlockSize: g.Positions, Layers: g.Layers, Heads: g.Heads, Embed: g.Embed,
		Tied: g.Tied, Bias: true, EmbdDrop: g.EmbdDrop, AttnDrop: g.AttnDrop, ResidDrop: g.ResidDrop}
	for kind, name := range activations {
		if name == g.Activation {
			c.GELU = kind
			return c, nil
		}
	}
	return c, fmt.Errorf("config.json: activation_function %q is neither gelu_new nor gelu", g.Activation)
}

package model

import (
	"errors"
	"fmt"
	"math"
)

// GenerateOptions say how Generate chooses tokens. With all of them zero it
// generates nothing: MaxTokens is 0.
type GenerateOptions struct {
	MaxTokens   int     // to generate, at the most
	Temperature float64 // divides the logits; 0: always the likeliest token, of equals the lowest
	TopK        int     // draw among so many likeliest tokens; 0, or V and more: all
	TopP        float64 // draw among the likeliest tokens that together reach this probability; 0 or 1: all
	Seed        uint64  // the same seed gives the same text
	Stop        int32   // ends the text and is not emitted; negative: none
}

func (o GenerateOptions) validate() error {
	switch {
	case o.MaxTokens < 0:
		return fmt.Errorf("max tokens is %d, want at least 0", o.MaxTokens)
	case !(o.Temperature >= 0) || math.IsInf(o.Temperature, 0):
		return fmt.Errorf("temperature is %v, want a number of at least 0", o.Temperature)
	case o.TopK < 0:
		return fmt.Errorf("top-k is %d, want at least 0 (0: all)", o.TopK)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return fmt.Errorf("top-p is %v, want 0 to 1 (1: all)", o.TopP)
	}
	return nil
}

// ErrEmptyPrompt: a GPT has no first token to start from by itself.
var ErrEmptyPrompt = errors.New("the prompt is empty: give at least one symbol to continue")

// Generate continues prompt and gives emit each token as it is chosen; an error
// of emit ends the text and is returned as it is. The model sees the last
// BlockSize tokens, of a longer prompt as well as of a longer text. Drawing
// the i-th token depends on the logits, the seed and i alone.
func Generate(g *GPT, prompt []int32, o GenerateOptions, emit func(token int32) error) error {
	if err := o.validate(); err != nil {
		return err
	}
	if len(prompt) == 0 {
		return ErrEmptyPrompt
	}
	for i, token := range prompt {
		if token < 0 || int(token) >= g.cfg.VocabSize {
			return fmt.Errorf("prompt: token %d at place %d is outside the vocabulary of %d", token, i, g.cfg.VocabSize)
		}
	}
	context := append([]int32(nil), prompt...)
	for i := range o.MaxTokens {
		context = context[max(0, len(context)-g.cfg.BlockSize):]
		token, err := o.choose(g.Logits(context), i)
		if err != nil {
			return fmt.Errorf("token %d: %w", i, err)
		}
		if token == o.Stop {
			return nil
		}
		if err := emit(token); err != nil {
			return err
		}
		context = append(context, token)
	}
	return nil
}

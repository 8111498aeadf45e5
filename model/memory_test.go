package model

import (
	"testing"

	"ddp/model/compute"
	"ddp/model/compute/ref"
)

// counting adds up what is allocated through it.
type counting struct {
	compute.Backend
	floats *int
}

func (c counting) Alloc(n int) compute.Buffer {
	*c.floats += n
	return c.Backend.Alloc(n)
}

// TestMemoryPlanIsWhatIsAllocated, for heads that run at once and in pieces.
func TestMemoryPlanIsWhatIsAllocated(t *testing.T) {
	wide := small
	wide.VocabSize, wide.Tied = 1<<19, false // 16 rows of logits at a time, of 21
	for _, c := range []Config{small, wide} {
		floats := 0
		b := counting{ref.New(), &floats}
		if _, err := New(c, b, 3); err != nil {
			t.Fatal(err)
		}
		plan := PlanMemory(c, 3, 2)
		if got := int64(4 * floats); got != plan.Parameters+plan.Activations {
			t.Errorf("vocabulary %d: the model takes %d bytes, the plan %d", c.VocabSize, got, plan.Parameters+plan.Activations)
		}
		floats = 0
		if _, err := NewOptimizer(c, b, adamW); err != nil {
			t.Fatal(err)
		}
		if got := int64(4 * floats); got != plan.Optimizer {
			t.Errorf("the optimizer takes %d bytes, the plan %d", got, plan.Optimizer)
		}
		if plan.Gradients != 2*plan.Parameters || plan.Total() != 3*plan.Parameters+plan.Optimizer+plan.Activations {
			t.Errorf("plan %+v does not add up", plan)
		}
	}
}

// TestFLOPsPerToken: llm.c counts 803.5 MFLOP a token for GPT-2 124M, which
// includes the position embeddings and small vectors that ours leaves out.
func TestFLOPsPerToken(t *testing.T) {
	c := gpt2Size(t, "gpt2", true)
	small := 0
	for _, p := range c.Params() {
		if len(p.Shape) == 1 || p.Name == "wpe.weight" {
			small += p.Len
		}
	}
	const lct = 12 * 768 * 1024
	if got, want := c.FLOPsPerToken(), float64(6*(c.NumParams()-small)+6*lct); got != want {
		t.Errorf("%v FLOP a token, want %v", got, want)
	}
	if got := c.FLOPsPerToken() + 6*float64(small); got < 803e6 || got > 804e6 {
		t.Errorf("%v FLOP a token by llm.c's count, want about 803.5 M", got)
	}
}

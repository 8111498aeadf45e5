package train

import (
	"context"
	"fmt"

	"ddp/data"
	"ddp/spmd"
)

// examine is the share of the data set's held-out questions whose whole answer
// greedy generation gets right. ok is false for data without questions.
//
// Greedy generation is right exactly when, with the right answer so far given,
// each next symbol is the most likely one; so one forward pass a question does.
func (t *Trainer) examine(ctx context.Context) (accuracy float64, ok bool, err error) {
	exam, ok := t.set.Dataset.(data.Exam)
	if !ok {
		return 0, false, nil
	}
	right := []int64{0}
	for q := t.world.Rank(); q < exam.Questions(); q += t.world.Size() {
		if t.answers(exam.Prompt(q), exam.Answer(q)) {
			right[0]++
		}
	}
	if err := spmd.AllReduce(ctx, t.world, right, spmd.Sum); err != nil {
		return 0, false, fmt.Errorf("examine after step %d: %w", t.step, err)
	}
	return float64(right[0]) / float64(exam.Questions()), true, nil
}

// answers reports whether the model continues prompt with answer.
func (t *Trainer) answers(prompt, answer []int32) bool {
	input := append(append([]int32(nil), prompt...), answer[:len(answer)-1]...)
	best := t.gpt.Predict(input)
	for i, want := range answer {
		if best[len(prompt)-1+i] != want {
			return false
		}
	}
	return true
}

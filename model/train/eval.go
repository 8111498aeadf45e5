package train

import (
	"context"
	"fmt"

	"ddp/spmd"
)

// evaluate is the mean loss over the validation windows, every target counted
// once. Windows are computed in fixed groups, shared out over the ranks, and
// summed in one order, so the result does not depend on the world's size.
func (t *Trainer) evaluate(ctx context.Context) (float64, error) {
	windows := t.set.ValLen()
	if t.cfg.EvalWindows > 0 {
		windows = min(windows, t.cfg.EvalWindows)
	}
	x := make([]float64, 2*windows)
	losses, counts := x[:windows], x[windows:]
	t.evalGroups(windows, losses, counts)
	if err := spmd.AllReduce(ctx, t.world, x, spmd.Sum); err != nil {
		return 0, fmt.Errorf("evaluate after step %d: %w", t.step, err)
	}
	targets := spmd.TreeSum(counts)
	if targets == 0 {
		return 0, fmt.Errorf("evaluate after step %d: the validation windows hold no target", t.step)
	}
	return spmd.TreeSum(losses) / targets, nil
}

// evalGroups fills the losses and target counts of this rank's windows.
func (t *Trainer) evalGroups(windows int, losses, counts []float64) {
	group := t.cfg.Batch / t.cfg.Shards
	block := t.cfg.Model.BlockSize
	x, y := make([]int32, group*block), make([]int32, group*block)
	for g := t.world.Rank(); g*group < windows; g += t.world.Size() {
		first := g * group
		n := min(group, windows-first)
		t.progress.Add(1)
		for i := range n {
			t.set.Val(first+i, x[i*block:(i+1)*block], y[i*block:(i+1)*block])
		}
		for i, c := range t.gpt.Loss(x[:n*block], y[:n*block], n, losses[first:first+n]) {
			counts[first+i] = float64(c)
		}
	}
}

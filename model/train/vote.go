package train

import (
	"context"
	"fmt"

	"ddp/spmd"
)

// vote is what a rank asks of all of them; any one rank's wish counts.
type vote struct {
	stop, snapshot, pause bool
}

// agreement is the sum of what all ranks contributed to a step.
type agreement struct {
	losses, counts []float64 // by shard
	vote           vote
}

// agree shares each shard's loss and number of targets, and every rank's vote,
// in one small all-reduce. Each shard's entries come from one rank and the
// others add 0, which is exact.
func (t *Trainer) agree(ctx context.Context, losses, counts []float64, v vote) (agreement, error) {
	s := t.cfg.Shards
	x := make([]float64, 2*s+3)
	copy(x, losses)
	copy(x[s:], counts)
	x[2*s], x[2*s+1], x[2*s+2] = wish(v.stop), wish(v.snapshot), wish(v.pause)
	if err := spmd.AllReduce(ctx, t.world, x, spmd.Sum); err != nil {
		return agreement{}, fmt.Errorf("agree on step %d: %w", t.step+1, err)
	}
	return agreement{losses: x[:s], counts: x[s : 2*s], vote: vote{stop: x[2*s] > 0, snapshot: x[2*s+1] > 0, pause: x[2*s+2] > 0}}, nil
}

func wish(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

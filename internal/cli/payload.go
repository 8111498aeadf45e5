package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ddp/jobs"
	"ddp/runtime/observe"
	"ddp/spmd"
)

// payload is what the launcher passes to each rank through the inherited pipe:
// one of its fields, and what goes with it.
type payload struct {
	Train       json.RawMessage   `json:"train,omitempty"`       // a job, see jobs.Encode
	Spans       string            `json:"spans,omitempty"`       // with Train: the folder into which each rank writes where its time went
	Collectives bool              `json:"collectives,omitempty"` // check every collective
	Bench       *collectivesBench `json:"bench,omitempty"`       // time some
}

// collectivesBench says what `ddp bench collectives` times.
type collectivesBench struct {
	Names []string `json:"names"`
	Bytes []int    `json:"bytes"`
	Iters int      `json:"iters"`
}

func trainPayload(job *jobs.Job) ([]byte, error) {
	text, err := job.Encode()
	if err != nil {
		return nil, fmt.Errorf("encode the job: %w", err)
	}
	return json.Marshal(payload{Train: text})
}

// readPayload decodes what the launcher sent.
func readPayload(text []byte) (payload, error) {
	var p payload
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read the launcher's request: %w", err)
	}
	return p, nil
}

// collectives checks every collective in this world. Rank 0 reports each check.
func (r *rank) collectives(ctx context.Context, w *spmd.World) error {
	var failed []error
	spmd.Check(ctx, w, func(name string, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if w.Rank() == 0 {
			r.emit(observe.Check{Name: name, OK: err == nil})
		}
	})
	return errors.Join(failed...)
}

// benchCollectives times what was asked for; rank 0 reports.
func (r *rank) benchCollectives(ctx context.Context, w *spmd.World, b collectivesBench) error {
	for _, name := range b.Names {
		for _, bytes := range b.Bytes {
			median, algbw, busbw, wrong, err := spmd.Bench(ctx, w, name, bytes, b.Iters)
			if err != nil {
				return fmt.Errorf("bench %s of %d bytes: %w", name, bytes, err)
			}
			if w.Rank() == 0 {
				r.emit(observe.Bench{Name: name, Bytes: bytes, MS: float64(median.Nanoseconds()) / 1e6, AlgGBs: algbw, BusGBs: busbw, Wrong: wrong})
			}
		}
	}
	return nil
}

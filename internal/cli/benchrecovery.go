package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ddp/jobs"
	"ddp/runtime/elastic"
	"ddp/runtime/observe"
)

// recoveryJob is minGPT's mini model on the sample corpus.
const recoveryJob = `name = "recovery"
cluster.ranks = 2
recovery.max_restarts = 100
model = { preset = "gpt-mini", block_size = 128 }
data = { source = "text", path = "corpus/opticks.txt" }
train = { batch = 8, shards = 2, max_steps = 1000000, eval_every = 0, threads = 1 }
`

// recoveryResult is the line of `ddp bench recovery`.
type recoveryResult struct {
	Name     string    `json:"name"`
	MedianMS float64   `json:"median_ms"` // from SIGKILL to the end of the next step
	EachMS   []float64 `json:"each_ms"`
}

// benchRecovery kills a rank again and again and measures how long the training
// stands still: from the kill to the end of the next generation's first step.
func (in *invocation) benchRecovery(f benchFlags) error {
	dir, done, err := scratch("ddp-recovery")
	if err != nil {
		return err
	}
	defer done()
	job, err := jobs.Parse("recovery job", []byte(recoveryJob), []string{fmt.Sprintf("snapshot.dir=%q", dir), "snapshot.every_steps=5"})
	if err != nil {
		return err
	}
	if _, err := openData(job); err != nil {
		return err
	}
	request, err := trainPayload(job)
	if err != nil {
		return err
	}
	k := newKiller(f.steps)
	if _, err := elastic.Run(context.Background(), elastic.Spec{RunID: filepath.Base(dir), Nodes: nodes(job), Payload: request,
		LogDir: filepath.Join(dir, "logs"), MaxRestarts: f.steps + 1, Signals: k.stop, OnEvent: k.event}); err != nil {
		return err
	}
	r := recoveryResult{"recovery", medianOf(k.took), k.took}
	if f.json {
		return json.NewEncoder(in.stdout).Encode(r)
	}
	fmt.Fprintf(in.stdout, "from SIGKILL of a rank to the end of the next step: median %.0f ms of %.0f\n", r.MedianMS, r.EachMS)
	return nil
}

// killer kills rank 1 some steps into each generation.
type killer struct {
	kills      int            // still to do
	stop       chan os.Signal // ends the run
	victim     int            // pid of rank 1
	generation int
	steps      int // of this generation
	killedAt   time.Time
	took       []float64 // milliseconds
}

func newKiller(kills int) *killer {
	return &killer{kills: kills, stop: make(chan os.Signal, 1), generation: -1}
}

// stepsBetween is how far a generation gets before its rank dies: past a snapshot.
const stepsBetween = 7

func (k *killer) event(generation, _ int, line []byte) {
	at, e, err := observe.Parse(line)
	if err != nil {
		return
	}
	switch e := e.(type) {
	case observe.RankUp:
		if e.Rank == 1 {
			k.victim = e.PID
		}
	case observe.Step:
		k.step(generation, at)
	}
}

// step measures a generation's first step, and kills after its last.
func (k *killer) step(generation int, at time.Time) {
	if generation > k.generation {
		k.generation, k.steps = generation, 0
		if !k.killedAt.IsZero() {
			k.took = append(k.took, float64(at.Sub(k.killedAt))/float64(time.Millisecond))
		}
	}
	k.steps++
	switch {
	case k.steps != stepsBetween:
	case k.kills == 0:
		k.stop <- syscall.SIGTERM
	default:
		k.kills--
		k.killedAt = time.Now()
		_ = syscall.Kill(k.victim, syscall.SIGKILL) // the missing restart shows if it has gone
	}
}

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

// recoveryJob is a model of 25 million parameters (as large as the one that
// `ddp bench step` takes) with steps so short that they hide little of a recovery.
const recoveryJob = `name = "recovery"
cluster.ranks = 2
model = { n_layer = 8, n_head = 8, n_embd = 512, block_size = 128, dropout = 0.0 }
data = { source = "text", path = "corpus/opticks.txt" }
train = { batch = 2, shards = 2, max_steps = 1000000, eval_every = 0, threads = 1 }
snapshot.every_steps = 5
`

// recoveryResult is a line of `ddp bench recovery`.
type recoveryResult struct {
	Name      string    `json:"name"`
	Mode      string    `json:"mode"`
	Params    int       `json:"params"`
	MedianMS  float64   `json:"median_ms"` // from SIGKILL to the end of the next step
	EachMS    []float64 `json:"each_ms"`
	StepMS    float64   `json:"step_ms"`    // median of undisturbed steps
	LostSteps int       `json:"lost_steps"` // done again, in all
}

// benchRecovery kills a rank again and again and measures how long the training
// stands still: from the kill to the end of the next generation's first step.
func (in *invocation) benchRecovery(f benchFlags) error {
	for _, mode := range []string{"live", "restart"} {
		r, err := timeRecovery(mode, f.steps)
		if err != nil {
			return err
		}
		if f.json {
			if err := json.NewEncoder(in.stdout).Encode(r); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(in.stdout, "%-8s %.1f M parameters: from SIGKILL of a rank to the end of the next step: median %.0f ms of %.0f (a step takes %.0f ms), %d steps done again\n",
			r.Mode, float64(r.Params)/1e6, r.MedianMS, r.EachMS, r.StepMS, r.LostSteps)
	}
	return nil
}

func timeRecovery(mode string, kills int) (recoveryResult, error) {
	dir, done, err := scratch("ddp-recovery")
	if err != nil {
		return recoveryResult{}, err
	}
	defer done()
	job, err := jobs.Parse("recovery job", []byte(recoveryJob), []string{fmt.Sprintf("snapshot.dir=%q", dir)})
	if err != nil {
		return recoveryResult{}, err
	}
	set, err := openData(job)
	if err != nil {
		return recoveryResult{}, err
	}
	request, err := trainPayload(job)
	if err != nil {
		return recoveryResult{}, err
	}
	k := newKiller(kills, mode == "live")
	if _, err := elastic.Run(context.Background(), elastic.Spec{RunID: filepath.Base(dir), Nodes: nodes(job), Payload: request,
		Live: k.live, LogDir: filepath.Join(dir, "logs"), MaxRestarts: kills + 1, Signals: k.stop, OnEvent: k.event}); err != nil {
		return recoveryResult{}, err
	}
	return recoveryResult{"recovery", mode, job.ModelConfig(set.VocabSize()).NumParams(), medianOf(k.took), k.took, medianOf(k.stepMS), k.lost}, nil
}

// killer kills rank 1 some steps into each generation.
type killer struct {
	kills      int            // still to do
	stop       chan os.Signal // ends the run
	victim     int            // pid of rank 1
	generation int
	steps      int // of this generation
	live       bool
	last       int // step
	killedAt   time.Time
	took       []float64 // milliseconds
	stepMS     []float64
	lost       int
}

func newKiller(kills int, live bool) *killer {
	return &killer{kills: kills, stop: make(chan os.Signal, 1), generation: -1, live: live}
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
		k.step(generation, at, e)
	}
}

// step measures a generation's first step, and kills after its last.
func (k *killer) step(generation int, at time.Time, e observe.Step) {
	if k.live && e.Step <= k.last {
		return // told again by a rank that cannot know that it was told
	}
	if generation > k.generation {
		k.generation, k.steps = generation, 0
		if !k.killedAt.IsZero() {
			k.took = append(k.took, float64(at.Sub(k.killedAt))/float64(time.Millisecond))
			k.lost += max(0, k.last-(e.Step-1))
		}
	}
	k.steps++
	k.last = e.Step
	switch {
	case k.steps != stepsBetween:
		k.stepMS = append(k.stepMS, e.StepMS)
	case k.kills == 0:
		k.stop <- syscall.SIGTERM
	default:
		k.kills--
		k.killedAt = time.Now()
		_ = syscall.Kill(k.victim, syscall.SIGKILL) // the missing restart shows if it has gone
	}
}

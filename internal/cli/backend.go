package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"ddp/jobs"
	"ddp/model/compute/cpu"
	"ddp/model/compute/timed"
	"ddp/model/train"
	"ddp/spmd"
)

// isaVariable forces a CPU path.
const isaVariable = "DDP_ISA"

// openBackend chooses one instruction set for all ranks and opens the CPU back
// end, unless this rank has one already from an earlier generation.
func (r *rank) openBackend(ctx context.Context, job *jobs.Job, w *spmd.World, resume *train.Resume) error {
	isa, err := r.agreeISA(ctx, w, resume)
	if err != nil || r.backend != nil {
		return err
	}
	b, err := cpu.New(cpu.Options{ISA: isa, Threads: threads(job, w.LocalSize())})
	if err != nil {
		return fmt.Errorf("open the cpu back end: %w", err)
	}
	r.backend = b
	if r.spans != nil {
		r.backend = timed.New(b, r.spans)
	}
	if resume != nil && resume.ISA() != isa && w.Rank() == 0 {
		r.warn("the snapshot was computed with %s, the run goes on with %s: it rounds differently from here on", resume.ISA(), isa)
	}
	return nil
}

func (r *rank) closeBackend() {
	if r.backend != nil {
		r.backend.Close()
	}
}

// paths is what a rank says of its machine's instruction sets.
type paths struct {
	Have  []string `json:"have"`  // from the least to the best
	Wish  string   `json:"wish"`  // that the user forced here, or that the snapshot names; "": none
	Bound string   `json:"bound"` // what the rank computes with since an earlier generation; "": nothing yet
}

// agreeISA is the instruction set that the whole job uses: that of the ranks
// which hold the run's state, else the forced one, else the snapshot's where
// every rank has it, else the best that every rank has. A sum that rounds
// differently on one rank would end bit-for-bit resumption.
func (r *rank) agreeISA(ctx context.Context, w *spmd.World, resume *train.Resume) (string, error) {
	mine, err := r.paths(resume)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return "", err
	}
	all, err := spmd.GatherBytes(ctx, w, text, 0)
	if err == nil && w.Rank() == 0 {
		text, err = choosePath(all)
	}
	if err == nil {
		text, err = spmd.BroadcastBytes(ctx, w, text, 0)
	}
	if err != nil {
		return "", fmt.Errorf("agree on an instruction set: %w", err)
	}
	isa := string(text)
	if !slices.Contains(mine.Have, isa) {
		return "", usageError{fmt.Errorf("the run computes with %s, but this machine has %s", isa, strings.Join(mine.Have, ", "))}
	}
	return isa, nil
}

// paths is this rank's part in the choice.
func (r *rank) paths(resume *train.Resume) (paths, error) {
	p := paths{Have: cpu.ISAs()}
	if r.backend != nil {
		p.Bound = r.backend.ISA()
	}
	if resume != nil {
		p.Wish = resume.ISA()
	}
	forced, err := forcedISA()
	if err == nil && forced >= 0 {
		p.Wish = p.Have[forced]
	}
	return p, err
}

// choosePath decides for all ranks.
func choosePath(texts [][]byte) ([]byte, error) {
	all := make([]paths, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, fmt.Errorf("rank %d's instruction sets: %w", i, err)
		}
	}
	common := slices.DeleteFunc(slices.Clone(all[0].Have), func(isa string) bool {
		return slices.ContainsFunc(all, func(p paths) bool { return !slices.Contains(p.Have, isa) })
	})
	if len(common) == 0 {
		return nil, fmt.Errorf("the ranks' machines have none in common")
	}
	best := len(common) - 1
	for _, p := range all {
		if p.Bound != "" {
			return []byte(p.Bound), nil
		}
		if at := slices.Index(common, p.Wish); at >= 0 {
			best = min(best, at)
		}
	}
	return []byte(common[best]), nil
}

// forcedISA is the index in cpu.ISAs() that the environment forces, -1 for none.
func forcedISA() (int, error) {
	forced := os.Getenv(isaVariable)
	if forced == "" {
		return -1, nil
	}
	have := cpu.ISAs()
	i := slices.Index(have, forced)
	if i < 0 {
		return -1, usageError{fmt.Errorf("%s=%s, but this machine has %s", isaVariable, forced, strings.Join(have, ", "))}
	}
	return i, nil
}

// threads is how many threads each of ranks processes of this machine may use.
func threads(job *jobs.Job, ranks int) int {
	if job.Train.Threads > 0 {
		return job.Train.Threads
	}
	return max(1, usableCores()/ranks)
}

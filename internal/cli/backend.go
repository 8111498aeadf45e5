package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"ddp/jobs"
	"ddp/model/compute"
	"ddp/model/compute/cpu"
	"ddp/model/train"
	"ddp/spmd"
)

// isaVariable forces a CPU path.
const isaVariable = "DDP_ISA"

// openBackend chooses one instruction set for all ranks and opens the CPU back end.
func openBackend(ctx context.Context, job *jobs.Job, w *spmd.World, resume *train.Resume) (compute.Backend, error) {
	isa, err := agreeISA(ctx, w, resume)
	if err != nil {
		return nil, err
	}
	b, err := cpu.New(cpu.Options{ISA: isa, Threads: threads(job, w.LocalSize())})
	if err != nil {
		return nil, fmt.Errorf("open the cpu back end: %w", err)
	}
	return b, nil
}

// agreeISA is the instruction set that the whole job uses: the forced one, else
// the snapshot's where every rank has it, else the best that every rank has. A
// sum that rounds differently on one rank would end bit-for-bit resumption.
func agreeISA(ctx context.Context, w *spmd.World, resume *train.Resume) (string, error) {
	have := cpu.ISAs()
	wish := []int32{int32(len(have) - 1)}
	if resume != nil {
		if i := slices.Index(have, resume.ISA()); i >= 0 {
			wish[0] = int32(i)
		}
	}
	forced, err := forcedISA()
	if err != nil {
		return "", err
	}
	if forced >= 0 {
		wish[0] = int32(forced)
	}
	if err := spmd.AllReduce(ctx, w, wish, spmd.Min); err != nil {
		return "", fmt.Errorf("agree on an instruction set: %w", err)
	}
	return have[wish[0]], nil
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

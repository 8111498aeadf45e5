package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ddp/jobs"
	"ddp/model/compute"
	"ddp/model/compute/cpu"
	"ddp/runtime/elastic"
	"ddp/runtime/launch"
	"ddp/runtime/observe"
)

var benchCommand = command{
	name: "bench", args: "kernels|collectives|step|recovery [--json] [flags]", summary: "time kernels, collectives, a training step or a recovery",
	details: `kernels      the matrix products of a training step, one thread: GFLOP/s and the
             share of this core's measured peak
collectives  every collective between --ranks ranks, values checked, in
             nccl-tests' columns
step         a training step of --layers x --embd, median of --steps, and where its
             time goes: each operation's share, and how near it comes to what
             the machine can do
recovery     kill a rank --steps times: how long until the next step is done

examples:
  ddp bench kernels
  ddp bench collectives --ranks 2
  ddp bench step --ranks 2 --threads 1 --json
  ddp bench step --trace step.json`,
	run: runBench,
}

// benchFlags are the flags of all three.
type benchFlags struct {
	json                                      bool
	trace                                     string
	ranks, threads, steps                     int
	layers, heads, embd, block, batch, shards int
}

func runBench(in *invocation) error {
	var f benchFlags
	in.flags.BoolVar(&f.json, "json", false, "one JSON object a line")
	in.flags.IntVar(&f.ranks, "ranks", 2, "collectives, step: `N` ranks")
	in.flags.IntVar(&f.threads, "threads", 1, "step: `N` threads a rank")
	in.flags.IntVar(&f.steps, "steps", 6, "step: `N` steps counted, after two that are not; recovery: `N` kills")
	in.flags.IntVar(&f.layers, "layers", 8, "step: `N` layers")
	in.flags.IntVar(&f.heads, "heads", 8, "step: `N` heads")
	in.flags.IntVar(&f.embd, "embd", 512, "step: `N` channels")
	in.flags.IntVar(&f.block, "block", 128, "step: `N` tokens a sequence")
	in.flags.IntVar(&f.batch, "batch", 16, "step: `N` sequences a rank")
	in.flags.IntVar(&f.shards, "shards", 0, "step: `N` shards (default: the least power of two that is at least ranks)")
	in.flags.StringVar(&f.trace, "trace", "", "step: `FILE` for a trace of every operation, which ui.perfetto.dev opens")
	args, err := in.parse(1)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if _, err := forcedISA(); err != nil {
		return err
	}
	switch args[0] {
	case "kernels":
		return in.benchKernels(f)
	case "collectives":
		return in.benchCollectives(f)
	case "step":
		return in.benchStep(f)
	case "recovery":
		return in.benchRecovery(f)
	}
	return usageError{fmt.Errorf("bench: %q is none of kernels, collectives, step, recovery", args[0])}
}

// check reports what no kind of bench can do; stepJob's job checks the rest.
func (f benchFlags) check() error {
	for _, flag := range []struct {
		name        string
		value, most int
	}{{"ranks", f.ranks, 4096}, {"threads", f.threads, 4096}, {"steps", f.steps, 1_000_000}} {
		if flag.value < 1 || flag.value > flag.most {
			return usageError{fmt.Errorf("bench: --%s is %d, want 1 to %d", flag.name, flag.value, flag.most)}
		}
	}
	return nil
}

// kernelShapes are the products of a GPT's forward pass: y[M,N] = x[M,K]·w[K,N].
var kernelShapes = []struct{ m, k, n int }{
	{1024, 1024, 1024}, {2048, 512, 1536}, {2048, 512, 512}, {2048, 512, 2048}, {2048, 2048, 512}, {2048, 512, 65},
}

// kernelResult is one line of `ddp bench kernels`.
type kernelResult struct {
	Name   string  `json:"name"`
	Shape  string  `json:"shape"`
	DType  string  `json:"dtype"`
	ISA    string  `json:"isa"`
	MS     float64 `json:"ms"`
	GFLOPS float64 `json:"gflops"`
	OfPeak float64 `json:"of_peak"`
}

func (in *invocation) benchKernels(f benchFlags) error {
	if !f.json {
		fmt.Fprintf(in.stdout, "%-14s %-16s %-9s %-8s %10s %10s %8s\n", "name", "shape", "dtype", "isa", "ms", "GFLOP/s", "of peak")
	}
	for _, isa := range cpu.ISAs() {
		b, err := cpu.New(cpu.Options{ISA: isa, Threads: 1})
		if err != nil {
			return err
		}
		for _, s := range kernelShapes {
			in.showKernel(f.json, timeProduct(b, isa, s.m, s.k, s.n))
		}
		b.Close()
	}
	return nil
}

// timeProduct is the median of 7 products, with the peak measured beside them.
func timeProduct(b compute.Backend, isa string, m, k, n int) kernelResult {
	y, x, w := b.Alloc(m*n), b.Alloc(m*k), b.Alloc(k*n)
	var times, peaks []float64
	for range 7 {
		began := time.Now()
		b.Linear(y, x, w, compute.Buffer{}, m, k, n)
		times = append(times, time.Since(began).Seconds())
		peaks = append(peaks, cpu.PeakFLOPS(isa))
	}
	median := medianOf(times)
	flops := 2 * float64(m) * float64(k) * float64(n) / median
	return kernelResult{"linear", fmt.Sprintf("%dx%dx%d", m, k, n), "float32", isa, median * 1e3, flops / 1e9, flops / medianOf(peaks)}
}

func (in *invocation) showKernel(asJSON bool, r kernelResult) {
	if asJSON {
		_ = json.NewEncoder(in.stdout).Encode(r) // numbers and strings always marshal
		return
	}
	fmt.Fprintf(in.stdout, "%-14s %-16s %-9s %-8s %10.3f %10.1f %7.0f%%\n", r.Name, r.Shape, r.DType, r.ISA, r.MS, r.GFLOPS, 100*r.OfPeak)
}

func medianOf(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
}

// collectiveNames are what spmd.Bench knows, in nccl-tests' order.
var collectiveNames = []string{"all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all"}

func (in *invocation) benchCollectives(f benchFlags) error {
	request, err := json.Marshal(payload{Bench: &collectivesBench{Names: collectiveNames, Bytes: []int{1 << 10, 1 << 20, 100 << 20}, Iters: 11}})
	if err != nil {
		return err
	}
	if !f.json {
		fmt.Fprintf(in.stdout, "%-16s %12s %12s %12s %12s %8s\n", "name", "bytes", "time (ms)", "algbw (GB/s)", "busbw (GB/s)", "#wrong")
	}
	wrong := 0
	err = in.ranksDo(f.ranks, request, func(e observe.Event, line []byte) {
		b, ok := e.(observe.Bench)
		if !ok {
			return
		}
		wrong += b.Wrong
		if f.json {
			fmt.Fprintf(in.stdout, "%s\n", line)
			return
		}
		fmt.Fprintf(in.stdout, "%-16s %12d %12.4f %12.3f %12.3f %8d\n", b.Name, b.Bytes, b.MS, b.AlgGBs, b.BusGBs, b.Wrong)
	})
	if err == nil && wrong > 0 {
		err = fmt.Errorf("bench: %d values were wrong", wrong)
	}
	return err
}

// ranksDo runs request on local ranks, without restarts, and passes rank 0's events on.
func (in *invocation) ranksDo(ranks int, request []byte, on func(observe.Event, []byte)) error {
	id := uuid.NewString()
	logs, done, err := scratch("ddp-" + id)
	if err != nil {
		return err
	}
	defer done()
	signals, stop := notify()
	defer stop()
	res, err := elastic.Run(context.Background(), elastic.Spec{
		RunID: id, Nodes: []elastic.Node{{Ranks: ranks}}, Payload: request, LogDir: logs, Signals: signals,
		OnLine: func(_, rank int, _ string, line []byte) { fmt.Fprintf(in.stderr, "[rank %d] %s\n", rank, line) },
		OnEvent: func(_, _ int, line []byte) {
			if _, e, err := observe.Parse(line); err == nil {
				on(e, line)
			}
		},
	})
	if err != nil {
		return err
	}
	if res.ExitCode != launch.ExitOK {
		if res.Failure != nil {
			return fmt.Errorf("rank %d: %s", res.Failure.Rank, res.Failure.Cause)
		}
		return exitError{res.ExitCode}
	}
	return nil
}

// stepResult is the line of `ddp bench step`.
type stepResult struct {
	Name       string  `json:"name"`
	Shape      string  `json:"shape"`
	DType      string  `json:"dtype"`
	ISA        string  `json:"isa"`
	Ranks      int     `json:"ranks"`
	Threads    int     `json:"threads"`
	MS         float64 `json:"ms"`
	TokensPerS float64 `json:"tokens_per_s"`
}

func (in *invocation) benchStep(f benchFlags) error {
	job, err := stepJob(f)
	if err != nil {
		return err
	}
	if _, err := openData(job); err != nil {
		return err
	}
	text, err := job.Encode()
	if err != nil {
		return fmt.Errorf("encode the job: %w", err)
	}
	dir, done, err := scratch("ddp-spans-")
	if err != nil {
		return err
	}
	defer done()
	request, err := json.Marshal(payload{Train: text, Spans: dir})
	if err != nil {
		return err
	}
	r := stepResult{Name: "step", DType: "float32", Ranks: f.ranks, Threads: f.threads,
		Shape: fmt.Sprintf("L%d H%d C%d T%d B%d", f.layers, f.heads, f.embd, f.block, f.batch*f.ranks)}
	var times []float64
	err = in.ranksDo(f.ranks, request, func(e observe.Event, _ []byte) {
		switch e := e.(type) {
		case observe.RankUp:
			r.ISA = e.ISA
		case observe.Step:
			times = append(times, e.StepMS)
		}
	})
	if err != nil {
		return err
	}
	r.MS = medianOf(times[min(uncounted, len(times)-1):])
	r.TokensPerS = float64(f.batch*f.ranks*f.block) / r.MS * 1e3
	if f.json {
		_ = json.NewEncoder(in.stdout).Encode(r) // numbers and strings always marshal
	} else {
		fmt.Fprintf(in.stdout, "%s, %d ranks x %d threads, %s %s: %.1f ms a step, %.0f tokens/s\n", r.Shape, r.Ranks, r.Threads, r.DType, r.ISA, r.MS, r.TokensPerS)
	}
	return in.stepSpans(f, dir, r.ISA)
}

// uncounted is how many steps come before those that count.
const uncounted = 2

// stepSpans tells where the ranks' time went.
func (in *invocation) stepSpans(f benchFlags, dir, isa string) error {
	all, err := readSpans(dir, f.ranks)
	if err != nil {
		return err
	}
	if f.trace != "" {
		if err := saveTrace(f.trace, all); err != nil {
			return err
		}
	}
	p, err := measurePeaks(isa, f.threads)
	if err != nil {
		return err
	}
	for rank := range all {
		all[rank] = counted(all[rank], uncounted)
	}
	parts := stepParts(all, p)
	if !f.json {
		in.showParts(parts, p)
		return nil
	}
	for _, part := range parts {
		_ = json.NewEncoder(in.stdout).Encode(part)
	}
	return nil
}

// stepJob is a job of the asked shape over the sample corpus, without
// evaluation or snapshots.
func stepJob(f benchFlags) (*jobs.Job, error) {
	if f.shards == 0 {
		for f.shards = 1; f.shards < f.ranks; f.shards *= 2 {
		}
	}
	text := fmt.Sprintf(`name = "bench"
cluster.ranks = %d
model = { n_layer = %d, n_head = %d, n_embd = %d, block_size = %d, tied = false, dropout = 0 }
data = { source = "text", path = "corpus/opticks.txt" }
train = { batch = %d, shards = %d, max_steps = %d, eval_every = 0, eval_windows = 1, threads = %d }
optimizer = { lr = 3e-4, warmup_steps = 0 }
snapshot = { dir = "" }
`, f.ranks, f.layers, f.heads, f.embd, f.block, f.batch*f.ranks, f.shards, f.steps+uncounted, f.threads)
	job, err := jobs.Parse("bench flags", []byte(text), nil)
	if err != nil {
		return nil, usageError{fmt.Errorf("bench step: %s", strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	return job, nil
}

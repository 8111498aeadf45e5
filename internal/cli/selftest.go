package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ddp/jobs"
	"ddp/model/compute/conformance"
	"ddp/model/compute/cpu"
	"ddp/model/compute/ref"
	"ddp/runtime/elastic"
	"ddp/runtime/launch"
	"ddp/runtime/observe"
)

var selftestCommand = command{
	name: "selftest", args: "[--json]", summary: "prove that this machine computes and recovers right",
	details: `Runs every operation of every CPU path of this machine against the float64
reference, every collective on 2 to 4 local ranks, and a small training job whose
rank is killed on the way: it must end with the same bits as one undisturbed rank.
Ends with exit code 1 when anything is wrong. GPUs are not used by this version.

example:
  ddp selftest`,
	run: runSelftest,
}

// check is one row of the table.
type check struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Detail string  `json:"detail"`
	MS     float64 `json:"ms"`
}

func runSelftest(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object a line")
	if _, err := in.parse(0); err != nil {
		return err
	}
	s := selftest{in: in, json: *asJSON}
	for _, isa := range cpu.ISAs() {
		s.run("operations of cpu/"+isa, func() (string, error) { return checkOperations(isa) })
		s.run("threads of cpu/"+isa, func() (string, error) { return checkThreads(isa) })
	}
	for ranks := 2; ranks <= 4; ranks++ {
		s.run(fmt.Sprintf("collectives on %d ranks", ranks), func() (string, error) { return in.checkCollectives(ranks) })
	}
	s.run("training, kill and resume", in.checkTraining)
	if s.failed > 0 {
		return exitError{launch.ExitFailed}
	}
	return nil
}

// selftest runs checks and shows each as it ends.
type selftest struct {
	in     *invocation
	json   bool
	failed int
}

func (s *selftest) run(name string, body func() (string, error)) {
	began := time.Now()
	detail, err := body()
	c := check{Name: name, OK: err == nil, Detail: detail, MS: float64(time.Since(began).Microseconds()) / 1e3}
	if err != nil {
		c.Detail = err.Error()
		s.failed++
	}
	if s.json {
		_ = json.NewEncoder(s.in.stdout).Encode(c) // plain values always marshal
		return
	}
	verdict := "ok    "
	if err != nil {
		verdict = "FAILED"
	}
	fmt.Fprintf(s.in.stdout, "%s  %-28s %7.0f ms  %s\n", verdict, name, c.MS, c.Detail)
}

// checkOperations holds every operation of one CPU path against the reference.
func checkOperations(isa string) (string, error) {
	b, err := cpu.New(cpu.Options{ISA: isa, Threads: 1})
	if err != nil {
		return "", err
	}
	defer b.Close()
	oracle := ref.New()
	defer oracle.Close()
	t := tally{}
	err = conformance.Run(context.Background(), b, oracle, t.add)
	return t.result(err)
}

// checkThreads wants the same bits from one thread and from several.
func checkThreads(isa string) (string, error) {
	one, err := cpu.New(cpu.Options{ISA: isa, Threads: 1})
	if err != nil {
		return "", err
	}
	defer one.Close()
	three, err := cpu.New(cpu.Options{ISA: isa, Threads: 3})
	if err != nil {
		return "", err
	}
	defer three.Close()
	t := tally{}
	err = conformance.Threads(context.Background(), one, three, t.add)
	return t.result(err)
}

// tally collects conformance results.
type tally struct {
	cases  int
	worst  float64 // error as a share of its tolerance
	where  string
	failed []error
}

func (t *tally) add(r conformance.Result) {
	t.cases++
	if !r.Pass() {
		t.failed = append(t.failed, fmt.Errorf("%s %s: error %.3g, allowed %.3g, %v", r.Op, r.Shape, r.MaxErr, r.Tolerance, r.Err))
	}
	if share := r.MaxErr / r.Tolerance; r.Tolerance > 0 && share > t.worst {
		t.worst, t.where = share, r.Op+" "+r.Shape
	}
}

func (t *tally) result(err error) (string, error) {
	if len(t.failed) > 3 {
		t.failed = append(t.failed[:3], fmt.Errorf("and %d more", len(t.failed)-3))
	}
	if err = errors.Join(append(t.failed, err)...); err != nil {
		return "", err
	}
	if t.where == "" {
		return fmt.Sprintf("%d cases, bit for bit", t.cases), nil
	}
	return fmt.Sprintf("%d cases, worst error %.0f%% of its tolerance (%s)", t.cases, 100*t.worst, t.where), nil
}

// checkCollectives runs every collective between real processes.
func (in *invocation) checkCollectives(ranks int) (string, error) {
	request, err := json.Marshal(payload{Collectives: true})
	if err != nil {
		return "", err
	}
	n := 0
	err = in.ranksDo(ranks, request, func(e observe.Event, _ []byte) {
		if _, ok := e.(observe.Check); ok {
			n++
		}
	})
	return fmt.Sprintf("%d checks", n), err
}

// selftestJob is a small job with everything on.
const selftestJob = `name = "selftest"
model = { n_layer = 2, n_head = 2, n_embd = 32, dropout = 0.1 }
data = { source = "adder" }
train = { batch = 16, shards = 4, max_steps = 30, threads = 1, eval_windows = 16 }
optimizer = { lr = 1e-3, warmup_steps = 0 }
`

// checkTraining runs the job on one rank, then on two of which one is killed,
// and compares the parameters.
func (in *invocation) checkTraining() (string, error) {
	dir, done, err := scratch("ddp-selftest")
	if err != nil {
		return "", err
	}
	defer done()
	alone, err := in.trainOnce(filepath.Join(dir, "alone"), 1, -1)
	if err != nil {
		return "", fmt.Errorf("one rank: %w", err)
	}
	killed, err := in.trainOnce(filepath.Join(dir, "killed"), 2, 12)
	if err != nil {
		return "", fmt.Errorf("two ranks, one killed: %w", err)
	}
	if killed.Restarts == 0 {
		return "", errors.New("the killed rank was not noticed")
	}
	if alone.ParamsSHA256 != killed.ParamsSHA256 {
		return "", fmt.Errorf("two ranks with a kill end with parameters %.12s, one rank with %.12s", killed.ParamsSHA256, alone.ParamsSHA256)
	}
	return fmt.Sprintf("1 rank and 2 ranks with a SIGKILL end with the same bits (%.12s)", alone.ParamsSHA256), nil
}

// trainOnce runs the selftest job and kills rank 1 after step killAt (< 0: never).
func (in *invocation) trainOnce(dir string, ranks, killAt int) (observe.Done, error) {
	var result observe.Done
	job, err := jobs.Parse("selftest job", []byte(selftestJob), []string{
		fmt.Sprintf("cluster.ranks=%d", ranks), fmt.Sprintf("snapshot.dir=%q", dir), "snapshot.every_steps=5"})
	if err != nil {
		return result, err
	}
	request, err := trainPayload(job)
	if err != nil {
		return result, err
	}
	victim := 0
	var complaints []string
	res, err := elastic.Run(context.Background(), elastic.Spec{
		RunID: filepath.Base(dir) + fmt.Sprint(os.Getpid()), Nodes: []elastic.Node{{Ranks: ranks}}, Payload: request,
		LogDir: filepath.Join(dir, "logs"), MaxRestarts: 2, Window: time.Hour, Grace: time.Minute,
		OnFailure: func(f elastic.Failure) { complaints = append(complaints, f.Cause) },
		OnLine:    func(_, _ int, _ string, _ []byte) {},
		OnEvent: func(generation, rank int, line []byte) {
			_, e, err := observe.Parse(line)
			if err != nil {
				return
			}
			switch e := e.(type) {
			case observe.RankUp:
				if e.Rank == ranks-1 {
					victim = e.PID
				}
			case observe.Step:
				if e.Step == killAt && generation == 0 {
					_ = syscall.Kill(victim, syscall.SIGKILL) // if it has gone, the restart count tells
				}
			case observe.Done:
				result = e
			}
		},
	})
	if err != nil {
		return result, err
	}
	if res.ExitCode != launch.ExitOK {
		return result, fmt.Errorf("exit code %d: %s", res.ExitCode, strings.Join(complaints, "; "))
	}
	return result, nil
}

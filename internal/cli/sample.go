package cli

import (
	"bufio"
	"flag"
	"fmt"
	"strings"

	"ddp/data"
	"ddp/jobs"
	"ddp/model"
	"ddp/model/compute"
	"ddp/model/compute/cpu"
	"ddp/model/train"
	"ddp/runtime/snapshot"
)

var sampleCommand = command{
	name: "sample", args: "JOB [--prompt TEXT] [flags]", summary: "generate text from a job's newest snapshot",
	details: `Generates from the newest good snapshot of the job, with the tokenizer that is
inside it. Each token is printed as it comes. The jobs adder and sort have no
tokenizer: their prompts and answers are digits.

examples:
  ddp sample jobs/mingpt.toml --prompt "The Rays of Light" --max-tokens 300
  ddp sample jobs/adder.toml --prompt 8550 --max-tokens 3 --temperature 0`,
	run: runSample,
}

func runSample(in *invocation) error {
	prompt := in.flags.String("prompt", "", "`TEXT` to continue (default: the job's sample.prompt)")
	o := model.GenerateOptions{}
	in.flags.IntVar(&o.MaxTokens, "max-tokens", 0, "`N` tokens at the most (default: the job's)")
	in.flags.Float64Var(&o.Temperature, "temperature", 0, "`X` divides the logits; 0 takes the likeliest (default: the job's)")
	in.flags.IntVar(&o.TopK, "top-k", 0, "only the `K` likeliest; 0: all (default: the job's)")
	in.flags.Float64Var(&o.TopP, "top-p", 0, "only the likeliest that make up `P` (default: the job's)")
	in.flags.Uint64Var(&o.Seed, "seed", 1, "`SEED`: the same gives the same text")
	stop := in.flags.String("stop", "", "end at this `TEXT` (one token)")
	special := in.flags.Bool("special", false, "special tokens such as <|endoftext|> count as such in prompt and stop")
	path := in.flags.String("snapshot", "", "`DIR` of one snapshot (default: the newest good one)")
	job, err := in.job()
	if err != nil {
		return err
	}
	snap, err := chooseSnapshot(job, *path, in.note)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	in.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	sampleDefaults(job, given, &o, prompt)
	return in.sampleFrom(job, snap, *prompt, *stop, *special, o)
}

// sampleDefaults fills in from the job what no flag of the given ones said.
func sampleDefaults(job *jobs.Job, given map[string]bool, o *model.GenerateOptions, prompt *string) {
	if !given["prompt"] {
		*prompt = job.Sample.Prompt
	}
	if !given["max-tokens"] {
		o.MaxTokens = job.Sample.MaxTokens
	}
	if !given["temperature"] {
		o.Temperature = job.Sample.Temperature
	}
	if !given["top-k"] {
		o.TopK = job.Sample.TopK
	}
	if !given["top-p"] {
		o.TopP = job.Sample.TopP
	}
}

// chooseSnapshot opens the snapshot that was asked for, or the newest good one.
func chooseSnapshot(job *jobs.Job, path string, note func(string)) (*snapshot.Snapshot, error) {
	if path != "" {
		if err := snapshot.Verify(path); err != nil {
			return nil, snapshotError{fmt.Errorf("snapshot %s: %w", path, err)}
		}
		snap, err := snapshot.Open(path)
		if err != nil {
			return nil, snapshotError{fmt.Errorf("snapshot %s: %w", path, err)}
		}
		return snap, nil
	}
	if job.Snapshot.Dir == "" {
		return nil, takesNone(job)
	}
	snap, bad, err := snapshot.Newest(job.Snapshot.Dir)
	for _, p := range bad {
		note(fmt.Sprintf("snapshot passed over: %v", p))
	}
	if err != nil {
		return nil, snapshotError{err}
	}
	if snap == nil {
		return nil, snapshotError{fmt.Errorf("no good snapshot in %s: train first with `ddp run`", job.Snapshot.Dir)}
	}
	return snap, nil
}

// sampleFrom prints the prompt and what the model makes of it.
func (in *invocation) sampleFrom(job *jobs.Job, snap *snapshot.Snapshot, prompt, stop string, special bool, o model.GenerateOptions) error {
	tokenizer, err := snapshotTokenizer(snap)
	if err != nil {
		return err
	}
	encode, err := encoder(tokenizer, special)
	if err != nil {
		return err
	}
	tokens, err := encode(prompt)
	if err != nil {
		return usageError{fmt.Errorf("prompt: %w", err)}
	}
	if o.Stop, err = stopToken(encode, stop); err != nil {
		return err
	}
	backend, err := localBackend(job)
	if err != nil {
		return err
	}
	defer backend.Close()
	gpt, err := train.OpenModel(snap, backend)
	if err != nil {
		return snapshotError{err}
	}
	out := bufio.NewWriter(in.stdout)
	fmt.Fprint(out, prompt)
	err = model.Generate(gpt, tokens, o, func(token int32) error {
		fmt.Fprint(out, tokenizer.Decode([]int32{token}))
		return out.Flush()
	})
	if err != nil {
		return usageError{fmt.Errorf("sample: %w", err)}
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// localBackend is for this process alone, with the job's threads or one a core.
func localBackend(job *jobs.Job) (compute.Backend, error) {
	forced, err := forcedISA()
	if err != nil {
		return nil, err
	}
	options := cpu.Options{Threads: threads(job, 1)}
	if forced >= 0 {
		options.ISA = cpu.ISAs()[forced]
	}
	b, err := cpu.New(options)
	if err != nil {
		return nil, fmt.Errorf("open the cpu back end: %w", err)
	}
	return b, nil
}

// snapshotTokenizer is the one inside the snapshot, or digits for the tasks
// that have none.
func snapshotTokenizer(snap *snapshot.Snapshot) (data.Tokenizer, error) {
	text, err := train.Tokenizer(snap)
	if err != nil {
		return nil, snapshotError{err}
	}
	if text == nil {
		return data.NewCharTokenizer("0123456789"), nil
	}
	tokenizer, err := data.LoadTokenizer(text)
	if err != nil {
		return nil, snapshotError{fmt.Errorf("snapshot %s: tokenizer: %w", snap.Path, err)}
	}
	return tokenizer, nil
}

// encoder is the tokenizer's Encode, with its special tokens if they are asked for.
func encoder(tokenizer data.Tokenizer, special bool) (func(string) ([]int32, error), error) {
	if !special {
		return tokenizer.Encode, nil
	}
	bpe, is := tokenizer.(*data.BPE)
	if !is {
		return nil, usageError{fmt.Errorf("sample: --special: a %s tokenizer has no special tokens", tokenizer.Name())}
	}
	return func(text string) ([]int32, error) { return bpe.EncodeSpecial(text, bpe.Special()...) }, nil
}

// stopToken is the token of a one-token text; -1 for none.
func stopToken(encode func(string) ([]int32, error), stop string) (int32, error) {
	if stop == "" {
		return -1, nil
	}
	tokens, err := encode(stop)
	if err != nil {
		return 0, usageError{fmt.Errorf("stop: %w", err)}
	}
	if len(tokens) != 1 {
		return 0, usageError{fmt.Errorf("stop: %q is %d tokens, want one", stop, len(tokens))}
	}
	return tokens[0], nil
}

// closingSample ends a run with a look at what was learnt, when the job names a prompt.
func (in *invocation) closingSample(job *jobs.Job) error {
	if strings.TrimSpace(job.Sample.Prompt) == "" || job.Snapshot.Dir == "" {
		return nil
	}
	snap, err := chooseSnapshot(job, "", in.note)
	if err != nil {
		return err
	}
	o := model.GenerateOptions{Seed: 1}
	prompt := ""
	sampleDefaults(job, nil, &o, &prompt)
	return in.sampleFrom(job, snap, prompt, "", false, o)
}

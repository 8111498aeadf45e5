package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// textJob is a minimal job on text.txt, which each case may spoil.
const textJob = "[model]\npreset = \"gpt-nano\"\nblock_size = 16\n[data]\nsource = \"text\"\npath = \"text.txt\"\n[train]\nbatch = 8\nshards = 4\nmax_steps = 2\n"

// badInput is a command that must be refused with exactly this on stderr.
type badInput struct {
	name   string
	job    string // text of job.toml; "": textJob
	text   string // text of text.txt; "": tinyText
	args   []string
	stderr string // one line for each problem, without "ddp: "
}

func run(args ...string) []string { return append([]string{"run", "job.toml"}, args...) }

func set(keys ...string) []string {
	args := run()
	for _, k := range keys {
		args = append(args, "--set", k)
	}
	return args
}

var badInputs = []badInput{
	{"empty job", " ", "", run(), `job.toml: is empty (a job needs at least [data] with a path)`},
	{"no toml", "{json}", "", run(), ``},
	{"not UTF-8", "name = \"\xff\"", "", run(), ``},
	{"unknown key", textJob + "bacth = 3\n", "", run(), `job.toml:11:1: train.bacth: unknown key (did you mean train.batch?)`},
	{"unknown table", textJob + "[optimiser]\nlr = 1\n", "", run(), ``},
	{"duplicate key", textJob + "batch = 3\n", "", run(), ``},
	{"wrong type", strings.Replace(textJob, "batch = 8", `batch = "8"`, 1), "", run(), ``},
	{"missing job", "", "", []string{"run", "no.toml"}, `no.toml: cannot be read: no such file or directory`},
	{"folder as job", "", "", []string{"run", "."}, ``},
	{"no arguments", "", "", []string{"run"}, ``},
	{"two arguments", "", "", []string{"run", "job.toml", "job.toml"}, ``},
	{"unknown command", "", "", []string{"trian", "job.toml"}, ``},
	{"unknown flag", "", "", run("--jsno"), "run: flag provided but not defined: -jsno (see `ddp run --help`)"},
	{"set without value", "", "", set("train.batch"), `--set train.batch: is not of the form table.key=value`},
	{"set unknown key", "", "", set("train.bacth=4"), `--set train.bacth=4: train.bacth: unknown key (did you mean train.batch?)`},
	{"set no TOML", "", "", set("train.batch=[["), ``},
	{"zero batch", "", "", set("train.batch=0"), ``},
	{"batch not divisible", "", "", set("train.batch=10"), ``},
	{"shards no power of two", "", "", set("train.shards=3"), ``},
	{"world larger than the shards", "", "", set("cluster.ranks=5"), ``},
	{"negative rate", "", "", set("optimizer.lr=-1e-3"), ``},
	{"rate not finite", "", "", set("optimizer.lr=nan"), ``},
	{"dropout of one", "", "", set("model.dropout=1.0"), ``},
	{"beta of one", "", "", set("optimizer.betas=[0.9, 1.0]"), ``},
	{"negative steps", "", "", set("train.max_steps=-1"), ``},
	{"preset unknown", "", "", set(`model.preset="gpt-mnii"`), ``},
	{"preset and sizes", strings.Replace(textJob, "block_size", "n_layer = 2\nblock_size", 1), "", run(), ``},
	{"heads do not divide", strings.Replace(textJob, "preset = \"gpt-nano\"", "n_layer = 2\nn_head = 3\nn_embd = 32", 1), "", run(), ``},
	{"block of zero", "", "", set("model.block_size=0"), ``},
	{"device", "", "", set(`device="cuda"`), `--set device="cuda": device: cuda is not available yet; use cpu`},
	{"bfloat16", "", "", set(`train.precision="bfloat16"`), ``},
	{"no such recovery", "", "", set(`recovery.mode="lively"`), ``},
	{"schedule", "", "", set(`optimizer.schedule="cosin"`), ``},
	{"warm-up too long", textJob + "[optimizer]\nwarmup_steps = 50\n", "", run(), ``},
	{"empty text", "", " ", run(), ``},
	{"shorter than a block", "", "abcdef", run(), ``},
	{"one symbol", "", strings.Repeat("a", 400), run(), `text.txt: has only one symbol, "a": there is nothing to learn`},
	{"text not UTF-8", "", "abc\xffdef" + strings.Repeat("xyz", 99), run(), ``},
	{"missing text", "", "", set(`data.path="no.txt"`), `no.txt: cannot be read: no such file or directory`},
	{"folder without texts", "", "", set(`data.path="empty"`), ``},
	{"glob without match", "", "", set(`data.path="*.nope"`), ``},
	{"no tokenizer", "", "", set(`data.tokenizer="./no.json"`), ``},
	{"tokenizer is no tokenizer", "", "", set(`data.tokenizer="./text.txt"`), ``},
	{"split of zero", "", "", set("data.split=0.0"), ``},
	{"split leaves too little", "", "", set("data.split=0.001"), ``},
	{"bench of what", "", "", []string{"bench", "nothing"}, `bench: "nothing" is none of kernels, collectives, step, recovery`},
	{"launch without command", "", "", []string{"launch", "--nproc-per-node", "2"}, ``},
	{"launch with no rank", "", "", []string{"launch", "--nproc-per-node", "0", "--", "true"}, `launch: --nproc-per-node is 0, want at least 1`},
	{"check sees the data too", "", "a", []string{"check", "job.toml"}, ``},
}

// TestBadInput wants for each case exit code 2, one clear line a problem, no
// stack, nothing on stdout and nothing new in the folder.
func TestBadInput(t *testing.T) {
	for _, c := range badInputs {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			job, text := c.job, c.text
			if job == "" {
				job = textJob
			}
			if text == "" {
				text = tinyText()
			}
			write(t, filepath.Join(dir, "job.toml"), job)
			write(t, filepath.Join(dir, "text.txt"), text)
			if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := execute(t, dir, c.args...)
			refused(t, code, stdout, stderr)
			if want := "ddp: " + c.stderr + "\n"; c.stderr != "" && stderr != want {
				t.Errorf("stderr\n%swant\n%s", stderr, want)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
				t.Errorf("the folder now holds %v, %v", entries, err)
			}
		})
	}
}

// refused checks what holds for all bad input.
func refused(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if code != 2 || stdout != "" {
		t.Errorf("exit code %d and stdout %q, want 2 and nothing", code, stdout)
	}
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) > 3 {
		t.Errorf("%d lines for one mistake:\n%s", len(lines), stderr)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "ddp: ") || len(line) < 20 || strings.Contains(line, "goroutine") || strings.Contains(line, "panic") {
			t.Errorf("unclear line %q", line)
		}
	}
	t.Log(stderr)
}

// TestOtherRun refuses to go on from snapshots of another model or other data,
// and names the difference.
func TestOtherRun(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.toml"), textJob)
	write(t, filepath.Join(dir, "text.txt"), tinyText())
	start(t, dir, nil, run("--json")...).finish()

	code, stdout, stderr := execute(t, dir, set("model.tied=false", "optimizer.lr=1e-4")...)
	refused(t, code, stdout, stderr)
	if !strings.Contains(stderr, "model.tied: true in the snapshot, false in the job") {
		t.Errorf("the difference is not named: %s", stderr)
	}
	p := start(t, dir, nil, append(set("train.max_steps=3", "optimizer.lr=1e-4"), "--json")...)
	p.finish()
	for _, want := range []string{"train.max_steps: 2 in the snapshot, 3 in the job", "optimizer.lr: 0.0003 in the snapshot, 0.0001 in the job"} {
		if !strings.Contains(p.stderr.String(), want) {
			t.Errorf("nothing is said about %q:\n%s", want, p.stderr.String())
		}
	}
	write(t, filepath.Join(dir, "text.txt"), tinyText()+"more")
	code, stdout, stderr = execute(t, dir, run()...)
	refused(t, code, stdout, stderr)
	if !strings.Contains(stderr, "was trained on other data") {
		t.Errorf("the changed text is not named: %s", stderr)
	}
	start(t, dir, nil, run("--fresh", "--json")...).finish()
	if aside, err := filepath.Glob(filepath.Join(dir, "runs/job/archive-*/step-000000003")); err != nil || len(aside) != 1 {
		t.Errorf("--fresh kept %v, %v", aside, err)
	}
}

// TestDiverges ends a run whose numbers explode, once, with the step named; no
// snapshot holds what is not finite.
func TestDiverges(t *testing.T) {
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "optimizer.lr=1e30", "--set", "snapshot.every_steps=1")
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	f, ok := p.last("failure")
	if !ok || !strings.Contains(f.Cause, "diverged: ") || !strings.Contains(f.Cause, "step ") || p.count("failure") != 1 {
		t.Errorf("%d failures, the last %q", p.count("failure"), f.Cause)
	}
	for _, e := range p.all {
		if e.Event == "step" && e.Loss != e.Loss {
			t.Errorf("step %d has loss %v", e.Step, e.Loss)
		}
	}
	if code, out, _ := execute(t, dir, "snapshots", "job.toml"); code != 0 {
		t.Errorf("snapshots: exit code %d\n%s", code, out)
	}
}

// TestSample holds what `ddp sample` does at the edges.
func TestSample(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.toml"), textJob)
	write(t, filepath.Join(dir, "text.txt"), tinyText())
	if code, _, stderr := execute(t, dir, "sample", "job.toml", "--prompt", "the"); code != 5 || !strings.Contains(stderr, "train first") {
		t.Errorf("without snapshots: exit code %d, %q", code, stderr)
	}
	start(t, dir, nil, run("--json")...).finish()
	sample := func(args ...string) string {
		t.Helper()
		code, out, stderr := execute(t, dir, append([]string{"sample", "job.toml", "--max-tokens", "40"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, stderr)
		}
		return out
	}
	one := sample("--prompt", "the ", "--temperature", "1", "--seed", "1")
	if again := sample("--prompt", "the ", "--temperature", "1", "--seed", "1"); again != one {
		t.Errorf("one seed gives %q and %q", one, again)
	}
	if other := sample("--prompt", "the ", "--temperature", "1", "--seed", "2"); other == one {
		t.Errorf("two seeds give %q", one)
	}
	if n := len(strings.TrimSuffix(one, "\n")); n != 44 || !strings.HasPrefix(one, "the ") {
		t.Errorf("%d characters, want the prompt's 4 and 40 past the block of 16: %q", n, one)
	}
	greedy := sample("--prompt", "the ", "--temperature", "0")
	if k := sample("--prompt", "the ", "--temperature", "1", "--top-k", "1"); k != greedy {
		t.Errorf("top-k 1 gives %q, greedy %q", k, greedy)
	}
	if all := sample("--prompt", "the ", "--temperature", "1", "--seed", "1", "--top-k", "1000"); all != one {
		t.Errorf("top-k beyond the vocabulary gives %q, off %q", all, one)
	}
	sample("--prompt", strings.Repeat("the light ", 9)) // longer than the block
	for args, want := range map[string]string{
		"--prompt=Queen": `ddp: prompt: character 'Q' at position 0 is not in the tokenizer's`,
		"--prompt=":      "ddp: sample: the prompt is empty",
		"--stop=th":      `ddp: stop: "th" is 2 tokens, want one`,
		"--top-p=2":      "ddp: sample: top-p is 2, want 0 to 1",
	} {
		code, stdout, stderr := execute(t, dir, "sample", "job.toml", "--prompt", "the", args)
		refused(t, code, strings.TrimPrefix(stdout, "the"), stderr)
		if !strings.HasPrefix(stderr, want) {
			t.Errorf("%s: %q, want %q", args, stderr, want)
		}
	}
}

// TestHelp wants a usage line and an example from every command.
func TestHelp(t *testing.T) {
	for _, c := range commands() {
		for _, args := range [][]string{{c.name, "--help"}, {"help", c.name}} {
			code, out, stderr := execute(t, t.TempDir(), args...)
			if code != 0 || stderr != "" || !strings.HasPrefix(out, "usage: ddp "+c.name) || !strings.Contains(out, "example") || !strings.Contains(out, "\n  ddp "+c.name) {
				t.Errorf("%v: exit code %d\n%s%s", args, code, out, stderr)
			}
		}
	}
}

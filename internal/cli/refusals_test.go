package cli

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// refusal is a command line that must end with exit code 2 and exactly these
// lines on stderr, "ddp: " before each.
type refusal struct {
	name string
	args []string
	want []string
}

// inFile is tinyJob with one piece of its text exchanged, run as a file; the
// lines are those of tinyJob, whose first is empty.
type inFile struct {
	name, old, new string
	want           []string
}

var refusedFiles = []inFile{
	{"syntax error", "ranks = 2", "ranks 2", []string{"job.toml:4:7: expected '=' after key"}},
	{"bare text", `"text.txt"`, "text.txt", []string{`job.toml:15:8: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`}},
	{"not UTF-8", "tiny", "caf\xe9", []string{"job.toml:2:12: byte 0xe9 is not UTF-8 (save the file as UTF-8)"}},
	{"slip in a key", "batch = 16", "bacth = 16", []string{"job.toml:18:1: train.bacth: unknown key (did you mean train.batch?)"}},
	{"slip in a table", "[optimizer]", "[optimiser]", []string{"job.toml:23:2: unknown table [optimiser] (did you mean [optimizer]?)"}},
	{"key of another table", "lr = 1e-3", "max_steps = 3", []string{"job.toml:24:1: optimizer.max_steps: unknown key (did you mean train.max_steps?)"}},
	{"key twice", "keep = 3", "keep = 3\nkeep = 4", []string{"job.toml:30:1: snapshot.keep: is set twice, first in line 29"}},
	{"text for an integer", "batch = 16", `batch = "16"`, []string{"job.toml:18:9: train.batch: must be an integer, not a string (write it without quotes)"}},
	{"fraction for an integer", "ranks = 2", "ranks = 1.5", []string{`job.toml:4:9: cluster.ranks: must be an integer or "auto", not a number with a fraction`}},
	{"negative rate", "lr = 1e-3", "lr = -1e-3", []string{"job.toml:24:6: optimizer.lr: must be above 0, not -1e-3"}},
	{"rate that is no number", "lr = 1e-3", "lr = nan", []string{"job.toml:24:6: optimizer.lr: must be finite, not nan"}},
	{"batch not divisible", "batch = 16", "batch = 12", []string{"job.toml:19:1: train.shards: 8 does not divide batch = 12"}},
	{"shards no power of two", "shards = 8", "shards = 6", []string{"job.toml:19:10: train.shards: must be a power of two, not 6"}},
	{"more ranks than shards", "ranks = 2", "ranks = 9", []string{"job.toml:4:1: cluster.ranks: 9 ranks cannot share 8 shards (use fewer ranks, or more train.shards (a power of two that divides train.batch))"}},
	{"heads not dividing", "n_head = 2", "n_head = 3", []string{"job.toml:9:1: model.n_head: 3 does not divide n_embd = 32"}},
	{"preset plus sizes", "[model]", "[model]\npreset = \"gpt-nano\"", []string{"job.toml:9:1: model.n_layer: contradicts model.preset (give one of them)"}},
	{"warm-up beyond the end", "warmup_steps = 5", "warmup_steps = 61", []string{"job.toml:25:1: optimizer.warmup_steps: 61 is above max_steps = 60"}},
	{"no path", `path = "text.txt"`, "", []string{`job.toml:13:2: data.path: is needed for source "text" (name a file, a folder or a pattern)`}},
	{"control characters in a key", "keep = 3", `"\u001b[31m" = 3`, []string{`job.toml:29:1: snapshot.\x1b[31m: unknown key`}},
	{"a problem a line, in order", "batch = 16\nshards = 8\nmax_steps = 60", "batch = 0\nshards = 3\nmax_stpes = 60", []string{
		"job.toml:18:9: train.batch: must be 1 to 1048576, not 0",
		"job.toml:19:10: train.shards: must be a power of two, not 3",
		"job.toml:20:1: train.max_stpes: unknown key (did you mean train.max_steps?)"}},
}

var refusals = []refusal{
	{"empty file", jobIs("empty.txt"), []string{"empty.txt: is empty (a job needs at least [data] with a path)"}},
	{"a folder as job", jobIs("folder"), []string{"folder: is a folder, not a job file (name a .toml file in it)"}},
	{"missing job", jobIs("nope.toml"), []string{"nope.toml: cannot be read: no such file or directory"}},
	{"dangling link as job", jobIs("dangling"), []string{"dangling: cannot be read: no such file or directory"}},
	{"path through a file", jobIs("job.toml/x"), []string{"job.toml/x: cannot be read: not a directory"}},

	{"empty text", setting(`data.path="empty.txt"`), []string{"empty.txt: holds no text: it is empty"}},
	{"text shorter than a block", setting(`data.path="short.txt"`), []string{"short.txt: 14 of 16 tokens are for training, but one window takes 17 (use a longer text, a larger data.split or a smaller model.block_size)"}},
	{"text not UTF-8", setting(`data.path="latin.txt"`), []string{`latin.txt: byte 8 (line 2) is not UTF-8: 0xe9 (save it as UTF-8, or use tokenizer = "byte")`}},
	{"folder without texts", setting(`data.path="folder"`), []string{"folder: the folder holds no .txt or .md file (for files of other names give a pattern, such as folder/*.csv)"}},
	{"one symbol only", setting(`data.path="one.txt"`), []string{`one.txt: has only one symbol, "a": there is nothing to learn`}},
	{"missing text", setting(`data.path="nope.txt"`), []string{"nope.txt: cannot be read: no such file or directory"}},
	{"dangling link as text", setting(`data.path="dangling"`), []string{"dangling: cannot be read: no such file or directory"}},
	{"device as text", setting(`data.path="/dev/null"`), []string{"/dev/null: is neither a file nor a folder"}},
	{"pattern without a match", setting(`data.path="folder/*.txt"`), []string{"folder/*.txt: no file matches the pattern"}},
	{"malformed pattern", setting(`data.path="[a"`), []string{"[a: the pattern is malformed"}},
	{"missing tokenizer", setting(`data.tokenizer="./nope.json"`), []string{"./nope.json: cannot be read: no such file or directory"}},
	{"broken tokenizer", setting(`data.tokenizer="broken.json"`), []string{"broken.json: read tokenizer: unexpected EOF"}},
	{"tokenizer of other text", setting(`data.tokenizer="digits.json"`), []string{"text.txt: character 't' at position 0 is not in the tokenizer's 10 symbols"}},
	{"split leaving nothing to train on", setting("data.split=0.001"), []string{"text.txt: 12 of 12291 tokens are for training, but one window takes 17 (use a longer text, a larger data.split or a smaller model.block_size)"}},
	{"split leaving nothing to validate on", setting("data.split=0.99999"), []string{"text.txt: 1 of 12291 tokens are for validation, but at least 2 are needed (use a longer text, a smaller data.split, or split = 1 for no validation)"}},
	{"sort of too few sequences", jobIs("sort.toml"), []string{"length 2 and 2 symbols give too few sequences to hold some out (raise data.length or data.symbols)"}},

	{"unknown flag", jobIs("job.toml", "--jsno"), []string{"run: flag provided but not defined: -jsno (see `ddp run --help`)"}},
	{"--set at the end", jobIs("job.toml", "--set"), []string{"run: flag needs an argument: -set (see `ddp run --help`)"}},
	{"--set without value", setting("train.batch="), []string{`--set train.batch=: train.batch: has no value (an empty string is "")`}},
	{"--set without equals sign", setting("train.batch"), []string{"--set train.batch: is not of the form table.key=value"}},
	{"--set of an unknown key", setting("train.bacth=3"), []string{"--set train.bacth=3: train.bacth: unknown key (did you mean train.batch?)"}},
	{"--set of what is no TOML", setting("train.batch=[1"), []string{"--set train.batch=[1: array is incomplete"}},
	{"--set of text without quotes", setting("data.path=a.txt"), []string{`a.txt: cannot be read: no such file or directory`}},
	{"--set of two lines", setting("train.batch=4\ntrain.shards=4"), []string{`--set train.batch=4\ntrain.shards=4: must be one line`}},
	{"--set against the file", setting("train.batch=4"), []string{"job.toml:19:1: train.shards: 8 does not divide batch = 4"}},
	{"flag with a bad value", []string{"sample", "job.toml", "--top-k", "many"}, []string{`sample: invalid value "many" for flag -top-k: parse error (see ` + "`ddp sample --help`)"}},
	{"boolean flag with a bad value", jobIs("job.toml", "--json=maybe"), []string{`run: invalid boolean value "maybe" for -json: parse error (see ` + "`ddp run --help`)"}},

	{"unknown command", []string{"trian", "job.toml"}, []string{`unknown command "trian" (commands: run, check, sample, snapshots, tokenizer, status, attach, logs, stop, drain, join, launch, selftest, bench, version; ` + "`ddp help` explains them)"}},
	{"help of an unknown command", []string{"help", "trian"}, []string{`unknown command "trian" (commands: run, check, sample, snapshots, tokenizer, status, attach, logs, stop, drain, join, launch, selftest, bench, version; ` + "`ddp help` explains them)"}},
	{"help of two commands", []string{"help", "run", "check"}, []string{"help: arguments wanted: at most 1, given: 2 (usage: ddp help [COMMAND])"}},
	{"no job", []string{"run"}, []string{"run: arguments wanted: 1, given: 0 (usage: ddp run JOB [--set table.key=value]... [--json] [--fresh] [--detach])"}},
	{"two jobs", jobIs("job.toml", "job.toml"), []string{"run: arguments wanted: 1, given: 2 (usage: ddp run JOB [--set table.key=value]... [--json] [--fresh] [--detach])"}},
	{"flag after the double dash", jobIs("job.toml", "--", "--json"), []string{"run: arguments wanted: 1, given: 2 (usage: ddp run JOB [--set table.key=value]... [--json] [--fresh] [--detach])"}},
	{"argument of version", []string{"version", "x"}, []string{"version: arguments wanted: 0, given: 1 (usage: ddp version)"}},
	{"argument of selftest", []string{"selftest", "x"}, []string{"selftest: arguments wanted: 0, given: 1 (usage: ddp selftest [--json])"}},
	{"bench of an unknown kind", []string{"bench", "speed"}, []string{`bench: "speed" is none of kernels, collectives, step, recovery`}},
	{"bench of two kinds", []string{"bench", "step", "kernels"}, []string{"bench: arguments wanted: 1, given: 2 (usage: ddp bench kernels|collectives|step|recovery [--json] [flags])"}},
	{"bench between no ranks", []string{"bench", "collectives", "--ranks", "0"}, []string{"bench: --ranks is 0, want 1 to 4096"}},
	{"bench of no kills", []string{"bench", "recovery", "--steps", "0"}, []string{"bench: --steps is 0, want 1 to 1000000"}},
	{"bench of a broken model", []string{"bench", "step", "--heads", "7"}, []string{"bench step: bench flags:3:24: model.n_head: 7 does not divide n_embd = 512"}},
	{"bench without the corpus", []string{"bench", "step"}, []string{"corpus/opticks.txt: cannot be read: no such file or directory"}},
	{"tokenizer of no text", []string{"tokenizer", "--size", "300", "--out", "x"}, []string{"tokenizer: no text given (usage: ddp tokenizer TEXT... --size N --out DIR)"}},
	{"tokenizer without a size", []string{"tokenizer", "text.txt", "--out", "x"}, []string{"tokenizer: --size is missing: how many tokens?"}},
	{"tokenizer without a folder", []string{"tokenizer", "text.txt", "--size", "300"}, []string{"tokenizer: --out is missing: which folder to write to?"}},
	{"tokenizer too small", []string{"tokenizer", "text.txt", "--size", "256", "--out", "x"}, []string{"the vocabulary must have 257 to 1048576 tokens, not 256"}},
	{"tokenizer of a missing text", []string{"tokenizer", "text.txt", "nope.txt", "--size", "300", "--out", "x"}, []string{"nope.txt: cannot be read: no such file or directory"}},
	{"tokenizer into a file", []string{"tokenizer", "text.txt", "--size", "300", "--out", "one.txt"}, []string{"one.txt: cannot be written: not a directory"}},
	{"tokenizer folder without one", setting(`data.tokenizer="./folder"`), []string{"./folder: the folder holds no tokenizer: neither tokenizer.json nor vocab.json and merges.txt"}},
	{"tokenizer.json of another kind", setting(`data.tokenizer="wordpiece.json"`), []string{`wordpiece.json: read tokenizer: the model is a "WordPiece", want BPE`}},
	{"launch without command", []string{"launch", "--nproc-per-node", "2", "--"}, []string{"launch: no command given: ddp launch --nproc-per-node 4 -- COMMAND"}},
	{"launch of no ranks", []string{"launch", "--nproc-per-node", "0", "--", "true"}, []string{"launch: --nproc-per-node is 0, want at least 1"}},
	{"launch of negative restarts", []string{"launch", "--max-restarts", "-1", "--", "true"}, []string{"launch: --max-restarts is -1, want 0 or more"}},
	{"launch of a missing command", []string{"launch", "--", "no-such-command"}, []string{`launch: cannot run "no-such-command": executable file not found in $PATH`}},
	{"launch of a folder", []string{"launch", "--", "./folder"}, []string{`launch: cannot run "./folder": is a directory`}},
	{"list of a job without snapshots", []string{"snapshots", "job.toml", "--set", `snapshot.dir=""`}, []string{"job tiny takes no snapshots: snapshot.dir is empty"}},
	{"sample of a job without snapshots", []string{"sample", "job.toml", "--set", `snapshot.dir=""`}, []string{"job tiny takes no snapshots: snapshot.dir is empty"}},
}

// jobIs is a run of another job file than job.toml, or with more words behind it.
func jobIs(args ...string) []string { return append([]string{"run"}, args...) }

func setting(set string) []string { return jobIs("job.toml", "--set", set) }

// TestRefusedFiles breaks the job file in one place each.
func TestRefusedFiles(t *testing.T) {
	dir := refusalFolder(t)
	for _, c := range refusedFiles {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(tinyJob, c.old) != 1 {
				t.Fatalf("%q is not once in tinyJob", c.old)
			}
			write(t, filepath.Join(dir, "job.toml"), strings.Replace(tinyJob, c.old, c.new, 1))
			for _, command := range []string{"run", "check", "sample", "snapshots"} {
				wantRefusal(t, dir, nil, []string{command, "job.toml"}, c.want)
			}
		})
	}
}

// TestRefusals gives what is no fault of the job file.
func TestRefusals(t *testing.T) {
	dir := refusalFolder(t)
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			wantRefusal(t, dir, nil, c.args, c.want)
			if c.args[0] == "run" && len(c.args) == 4 && c.args[2] == "--set" { // check finds the same faults
				wantRefusal(t, dir, nil, append([]string{"check"}, c.args[1:]...), c.want)
			}
		})
	}
}

// TestRefusedEnvironment names what an environment variable asks for in vain.
func TestRefusedEnvironment(t *testing.T) {
	dir := refusalFolder(t)
	_, have, _ := execute(t, dir, "version")
	isas := strings.TrimPrefix(have[strings.Index(have, "\ncpu "):], "\ncpu ")
	want := []string{"DDP_ISA=nonsense, but this machine has " + strings.ReplaceAll(strings.TrimSpace(isas), " ", ", ")}
	for _, args := range [][]string{{"run", "job.toml"}, {"run", "job.toml", "--json"}, {"check", "job.toml"}, {"bench", "kernels"}} {
		wantRefusal(t, dir, []string{"DDP_ISA=nonsense"}, args, want)
	}
	wantRefusal(t, dir, []string{"DDP_ROLE=king"}, []string{"version"}, []string{`unknown role "king" in DDP_ROLE`})
}

// TestNoCommand explains the commands, but not where results are expected.
func TestNoCommand(t *testing.T) {
	code, stdout, stderr := execute(t, t.TempDir())
	if code != 2 || stdout != "" || !strings.Contains(stderr, "commands:\n  run ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// wantRefusal runs ddp and wants exit code 2, the lines, no output and no trace in the folder.
func wantRefusal(t *testing.T, dir string, env, args, lines []string) {
	t.Helper()
	before := tree(t, dir)
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // its exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 2 || stdout.Len() > 0 {
		t.Errorf("%q: exit code %d, stdout %q, want 2 and nothing", args, code, stdout.String())
	}
	if want := "ddp: " + strings.Join(lines, "\nddp: ") + "\n"; stderr.String() != want {
		t.Errorf("%q: stderr is\n%swant\n%s", args, stderr.String(), want)
	}
	if after := tree(t, dir); !maps.Equal(before, after) {
		t.Errorf("%q: the folder held %v, now %v", args, before, after)
	}
}

// refusalFolder holds tinyJob, its text and much that is wrong.
func refusalFolder(t *testing.T) string {
	t.Helper()
	dir := tinyFolder(t)
	for name, text := range map[string]string{
		"empty.txt": "", "short.txt": "abcdefghijklmnop", "latin.txt": "one\ntwo \xe9\n", "one.txt": strings.Repeat("a", 99),
		"broken.json": "{", "digits.json": `{"kind":"char","symbols":"0123456789"}`,
		"wordpiece.json": `{"model":{"type":"WordPiece","vocab":{"a":0}}}`,
		"sort.toml":      "data = { source = \"sort\", length = 2, symbols = 2 }\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "folder", "table.csv"), "1,2\n")
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// tree is every path below dir with its size.
func tree(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all[path] = info.Size()
		if info.IsDir() {
			all[path] = 0
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

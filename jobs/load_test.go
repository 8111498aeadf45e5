package jobs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ddp/data"
)

// minimal is the shortest job; everything else in it is a default.
const minimal = "[data]\npath = \"corpus/a.txt\"\n"

func mustParse(t *testing.T, file string, sets ...string) *Job {
	t.Helper()
	j, err := Parse("jobs/first-try.toml", []byte(file), sets)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestDefaults(t *testing.T) {
	got := mustParse(t, minimal)
	want := &Job{
		Name: "first-try", Device: "auto",
		Cluster:  Cluster{MinNodes: 1, MaxNodes: 1, DiscoverEvery: 30 * time.Second},
		Recovery: Recovery{Mode: "live", MaxRestarts: 10, Window: time.Hour, Grace: 30 * time.Second, HangTimeout: 2 * time.Minute},
		Model: Model{
			Preset: "gpt-mini", Layers: 6, Heads: 6, Embed: 192, BlockSize: 128,
			Tied: true, Bias: true, GELU: "tanh", Dropout: 0.1, EmbdDrop: 0.1, ResidDrop: 0.1, AttnDrop: 0.1,
		},
		Data:      Data{Source: "text", Path: "corpus/a.txt", Tokenizer: "char", Split: 0.9, Digits: 2, Length: 6, Symbols: 3},
		Train:     Train{Batch: 64, Shards: 8, MaxSteps: 1000, EvalEvery: 100, Precision: "auto", Seed: 1337},
		Optimizer: Optimizer{LR: 3e-4, Betas: [2]float64{0.9, 0.95}, Eps: 1e-8, WeightDecay: 0.1, Decay: "mingpt", GradClip: 1, Schedule: "constant"},
		Snapshot:  Snapshot{Dir: "runs/first-try", EverySteps: 100, Keep: 3, Best: true},
		Sample:    Sample{MaxTokens: 200, Temperature: 0.8, TopP: 1},
	}
	got.Cluster.Nodes = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are\n%+v, want\n%+v", got, want)
	}
}

// The sample of the design, but for what this version does not have yet.
const designSample = `
name = "mingpt"
device = "auto"                    # auto | cpu | cuda
[cluster]
ranks = 2
nodes = [{ host = "a", ranks = 4 }, { host = "b", gpus = [0, 1] }]
min_nodes = 1                      # elastic range
max_nodes = 2
[recovery]
mode = "restart"
max_restarts = 10                  # within window
window = "1h"
[model]
preset = "gpt-mini"                # or n_layer, n_head, n_embd
block_size = 128
tied = true
bias = true
gelu = "tanh"                      # tanh | exact
dropout = 0.1                      # or embd_pdrop, resid_pdrop, attn_pdrop
[data]
source = "text"
path = "corpus/opticks.txt"
tokenizer = "char"
split = 0.9
[train]
batch = 64
shards = 8
max_steps = 1000
eval_every = 100
precision = "auto"
threads = 0
seed = 1337
[optimizer]
lr = 3e-4
betas = [0.9, 0.95]
weight_decay = 0.1
grad_clip = 1.0
schedule = "cosine"
warmup_steps = 50
[snapshot]
dir = "runs/mingpt"
every_steps = 100
keep = 3
`

func TestDesignSample(t *testing.T) {
	j := mustParse(t, designSample)
	wantNodes := []Node{{Host: "a", Ranks: 4}, {Host: "b", GPUs: []int{0, 1}}}
	if j.Name != "mingpt" || !reflect.DeepEqual(j.Cluster, Cluster{Ranks: 2, Nodes: wantNodes, MinNodes: 1, MaxNodes: 2, DiscoverEvery: 30 * time.Second}) {
		t.Errorf("name %q, cluster %+v", j.Name, j.Cluster)
	}
	if j.Optimizer.Schedule != "cosine" || j.Optimizer.WarmupSteps != 50 || j.MaxRanks() != 6 {
		t.Errorf("optimizer %+v, %d ranks", j.Optimizer, j.MaxRanks())
	}
}

// Each way of writing, and what of the job it changes.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, file string
		sets       []string
		check      func(*Job) bool
	}{
		{"dotted keys", minimal + "[train]\n[optimizer]\nlr = 1\n", nil, func(j *Job) bool { return j.Optimizer.LR == 1 }},
		{"inline table", "train = { batch = 4, seed = 9 }\n" + minimal, nil, func(j *Job) bool { return j.Train.Batch == 4 && j.Train.Seed == 9 }},
		{"list of tables", minimal + "[[cluster.nodes]]\nhost = \"a\"\nranks = 2\n[[cluster.nodes]]\nhost = \"me@b\"\n", nil,
			func(j *Job) bool {
				return reflect.DeepEqual(j.Cluster.Nodes, []Node{{Host: "a", Ranks: 2}, {Host: "me@b"}}) && j.Cluster.MinNodes == 2 && j.MaxRanks() == 0
			}},
		{"mark at the front, Windows lines", "\ufeff[data]\r\npath = \"a\"\r\n", nil, func(j *Job) bool { return j.Data.Path == "a" }},
		{"integer for a number", minimal + "[optimizer]\nweight_decay = 1\n", nil, func(j *Job) bool { return j.Optimizer.WeightDecay == 1 }},
		{"other bases", minimal + "[train]\nbatch = 0x1_0\nseed = 1_000\n", nil, func(j *Job) bool { return j.Train.Batch == 16 && j.Train.Seed == 1000 }},
		{"auto ranks", minimal + "[cluster]\nranks = \"auto\"\n", nil, func(j *Job) bool { return j.Cluster.Ranks == 0 }},
		{"durations", minimal + "[snapshot]\nevery = \"1h30m\"\n[recovery]\ngrace = 0\n", nil,
			func(j *Job) bool {
				return j.Snapshot.Every == 90*time.Minute && j.Snapshot.EverySteps == 0 && j.Recovery.Grace == 0
			}},
		{"never a snapshot", minimal + "[snapshot]\nevery_steps = 0\n", nil, func(j *Job) bool { return j.Snapshot.EverySteps == 0 }},
		{"snapshots by steps and epochs", minimal + "[snapshot]\nevery_steps = 7\nevery_epochs = 1\n", nil, func(j *Job) bool { return j.Snapshot.EverySteps == 7 && j.Snapshot.EveryEpochs == 1 }},
		{"shards follow the batch", minimal + "[train]\nbatch = 12\n", nil, func(j *Job) bool { return j.Train.Shards == 4 }},
		{"shards of an odd batch", minimal + "[train]\nbatch = 7\n", nil, func(j *Job) bool { return j.Train.Shards == 1 }},
		{"sizes", minimal + "[model]\nn_layer = 2\nn_head = 2\nn_embd = 64\n", nil,
			func(j *Job) bool { return j.Model.Preset == "" && j.Model.Layers == 2 && j.Model.Embed == 64 }},
		{"dropout apart", minimal + "[model]\ndropout = 0.2\nattn_pdrop = 0.0\n", nil,
			func(j *Job) bool { return j.Model.AttnDrop == 0 && j.Model.EmbdDrop == 0.2 && j.Model.ResidDrop == 0.2 }},
		{"adder's block", "[data]\nsource = \"adder\"\ndigits = 3\n", nil, func(j *Job) bool { return j.Model.BlockSize == 9 }},
		{"sort's block", "[data]\nsource = \"sort\"\nlength = 4\n[model]\nblock_size = 7\n", nil, func(j *Job) bool { return j.Model.BlockSize == 7 }},
		{"epochs", minimal + "[train]\nmax_epochs = 2\n[optimizer]\nwarmup_steps = 5000\n", nil, func(j *Job) bool { return j.Train.MaxEpochs == 2 }},
		{"saved tokenizer", minimal + "tokenizer = \"runs/x/tokenizer.json\"\n", nil, func(j *Job) bool { return j.Data.Tokenizer == "runs/x/tokenizer.json" }},
		{"growing", minimal + "[cluster]\nlisten = \":7077\"\n", nil, func(j *Job) bool { return j.Cluster.MinNodes == 1 && j.Cluster.MaxNodes == maxNodes }},
		{"elastic", minimal + "[cluster]\nmax_nodes = 4\n", nil, func(j *Job) bool { return j.Cluster.MinNodes == 1 && j.Cluster.MaxNodes == 4 }},
		{"fewer nodes than listed", minimal + "[cluster]\nnodes = [{host=\"a\",ranks=1},{host=\"b\",ranks=3}]\nmax_nodes = 1\n", nil,
			func(j *Job) bool { return j.Cluster.MinNodes == 1 && j.MaxRanks() == 3 }},

		{"a flag wins", minimal + "[train]\nbatch = 8\n", []string{"train.batch=16", "train.batch = 32"}, func(j *Job) bool { return j.Train.Batch == 32 }},
		{"a flag's text", minimal, []string{`data.path="b.txt"`, `data.tokenizer='byte'`, "name=\"x\""},
			func(j *Job) bool {
				return j.Data.Path == "b.txt" && j.Data.Tokenizer == "byte" && j.Name == "x" && j.Snapshot.Dir == "runs/x"
			}},
		{"a flag's list", minimal, []string{"optimizer.betas=[0.8, 0.9]", `cluster.nodes=[{host="h", ranks=2}]`},
			func(j *Job) bool { return j.Optimizer.Betas == [2]float64{0.8, 0.9} && j.MaxRanks() == 2 }},
		{"a flag's table", minimal, []string{"train={batch=4, max_steps=3}"}, func(j *Job) bool { return j.Train.Batch == 4 && j.Train.MaxSteps == 3 }},
		{"epochs by flag", minimal + "[train]\nmax_steps = 5\n", []string{"train.max_epochs=2"}, func(j *Job) bool { return j.Train.MaxEpochs == 2 }},
		{"steps by flag", minimal + "[train]\nmax_epochs = 5\n", []string{"train.max_steps=2"}, func(j *Job) bool { return j.Train.MaxEpochs == 0 && j.Train.MaxSteps == 2 }},
		{"preset by flag", minimal + "[model]\nn_layer = 2\nn_head = 2\nn_embd = 64\n", []string{`model.preset="gpt-nano"`},
			func(j *Job) bool { return j.Model.Preset == "gpt-nano" && j.Model.Embed == 48 }},
		{"sizes by flag", minimal + "[model]\npreset = \"gpt-nano\"\n", []string{"model.n_layer=2", "model.n_head=4", "model.n_embd=64"},
			func(j *Job) bool { return j.Model.Preset == "" && j.Model.Heads == 4 }},
		{"text without quotes", minimal, []string{"data.path=a b/c.txt", "snapshot.dir = /tmp/\"x\" ", "recovery.hang_timeout=4s", "name=7"},
			func(j *Job) bool {
				return strings.HasSuffix(j.Data.Path, "a b/c.txt") && strings.HasSuffix(j.Snapshot.Dir, `/tmp/"x"`) && j.Recovery.HangTimeout == 4*time.Second && j.Name == "7"
			}},
		{"cut short by flag", minimal + "[optimizer]\nwarmup_steps = 50\n", []string{"train.max_steps=3"}, func(j *Job) bool { return j.Train.MaxSteps == 3 }},
	} {
		j, err := Parse("j.toml", []byte(c.file), c.sets)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if !c.check(j) {
			t.Errorf("%s: %+v", c.name, j)
		}
	}
}

func TestBrokenFlags(t *testing.T) {
	for _, c := range []struct {
		file string
		sets []string
		want []string
	}{
		{minimal, []string{"train.bacth=1"}, []string{`--set train.bacth=1: train.bacth: unknown key (did you mean train.batch?)`}},
		{minimal, []string{"batch=1"}, []string{`--set batch=1: batch: unknown key (did you mean train.batch?)`}},
		{minimal, []string{"train.batch"}, []string{`--set train.batch: is not of the form table.key=value`}},
		{minimal, []string{"=5"}, []string{`--set =5: is not of the form table.key=value`}},
		{minimal, []string{"train.batch="}, []string{`--set train.batch=: train.batch: has no value (an empty string is "")`}},
		{minimal, []string{"data.path='b.txt"}, []string{`--set data.path='b.txt: unterminated literal string`}},
		{minimal, []string{"recovery.mode=liev"}, []string{`--set recovery.mode=liev: recovery.mode: must be "live" or "restart", not "liev" (did you mean "live"?)`}},
		{minimal, []string{"recovery.hang_timeout=5"}, []string{`--set recovery.hang_timeout=5: recovery.hang_timeout: must be a duration, not an integer (write it as "90s", "10m" or "1h30m")`}},
		{minimal, []string{"train.batch=x y"}, []string{`--set train.batch=x y: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`}},
		{minimal, []string{"train.batch=\"4\""}, []string{`--set train.batch="4": train.batch: must be an integer, not a string (write it without quotes)`}},
		{minimal, []string{"train.batch=4\ntrain.seed=1"}, []string{`--set train.batch=4\ntrain.seed=1: must be one line`}},
		{minimal, []string{`"a\nb".c=1`}, []string{`--set "a\nb".c=1: a\nb.c: unknown key`}},
		{minimal, []string{"train.batch=04"}, []string{`--set train.batch=04: integers cannot have leading zeroes`}},
		{minimal, []string{"name=\"\xff\""}, []string{"--set name=\"\ufffd\": is not UTF-8"}},
		{minimal, []string{"train.shards=3", "optimizer.lr=0"}, []string{
			`--set train.shards=3: train.shards: must be a power of two, not 3`, `--set optimizer.lr=0: optimizer.lr: must be above 0, not 0`}},
		{minimal, []string{"train.max_steps=3", "train.max_epochs=1"}, []string{`--set train.max_epochs=1: train.max_epochs: contradicts train.max_steps (give one of them)`}},
		{minimal, []string{"train.max_steps=3", "optimizer.warmup_steps=4"}, []string{`--set optimizer.warmup_steps=4: optimizer.warmup_steps: 4 is above max_steps = 3`}},
		{minimal + "[train]\nshards = 8\n", []string{"train.batch=12"}, []string{`j.toml:4:1: train.shards: 8 does not divide batch = 12`}},
		{minimal + "[train]\nseed = -1\n", []string{"train.seed=1", "train.batch=0"}, []string{
			`j.toml:4:8: train.seed: must be at least 0, not -1`, `--set train.batch=0: train.batch: must be 1 to 1048576, not 0`}},
	} {
		_, err := Parse("j.toml", []byte(c.file), c.sets)
		checkProblems(t, strings.Join(c.sets, " "), err, c.want)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("folder.toml", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("large.toml", []byte(strings.Repeat("# x\n", maxFile/4+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"nope.toml":         `nope.toml: cannot be read: no such file or directory`,
		"folder.toml":       `folder.toml: is a folder, not a job file (name a .toml file in it)`,
		"large.toml":        `large.toml: is larger than 131072 bytes: this is no job file`,
		"large.toml/x.toml": `large.toml/x.toml: cannot be read: not a directory`,
	} {
		_, err := Load(path, nil)
		checkProblems(t, path, err, []string{want})
	}
}

// A corpus given for a job file ends in bounded time and text.
func TestLargeFiles(t *testing.T) {
	for name, line := range map[string]string{"prose": "it was the best of times\n", "keys": "x1.y = 1\n", "one line": "[a],"} {
		_, err := Parse("j.toml", []byte(strings.Repeat(line, maxFile/len(line))), nil)
		if err == nil {
			t.Errorf("%s is a job", name)
		} else if lines := strings.Count(err.Error(), "\n") + 1; lines > mostLines+1 {
			t.Errorf("%s gives %d lines", name, lines)
		}
	}
}

// The job files of this folder are good, and their data opens where it needs no file.
func TestJobFiles(t *testing.T) {
	files, err := filepath.Glob("*.toml")
	if err != nil || len(files) < 5 {
		t.Fatalf("job files %v, %v", files, err)
	}
	for _, file := range files {
		var sets []string
		if file == "shakespeare-cpu.toml" {
			sets = []string{`data.path="input.txt"`}
		}
		j, err := Load(file, sets)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := strings.TrimSuffix(file, ".toml"); j.Name != want || j.Snapshot.Dir != "runs/"+want {
			t.Errorf("%s is job %q with snapshots in %s", file, j.Name, j.Snapshot.Dir)
		}
		if j.Data.Source != "text" {
			if _, err := data.Open(j.DataConfig()); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

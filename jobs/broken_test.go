package jobs

import (
	"errors"
	"strings"
	"testing"

	"ddp/model"
)

// text is the start of a job with nothing wrong, on one line: what follows it begins in line 2.
const text = "data.path = \"a.txt\"\n"

// Each broken file and the exact lines that the user reads.
var broken = []struct {
	name, file string
	want       []string
}{
	// not TOML
	{"nothing", "", []string{`j.toml: is empty (a job needs at least [data] with a path)`}},
	{"blank", " \n\t\r\n", []string{`j.toml: is empty (a job needs at least [data] with a path)`}},
	{"latin 1", text + "# caf\xe9\n", []string{`j.toml:2:6: byte 0xe9 is not UTF-8 (save the file as UTF-8)`}},
	{"bare text", "[data]\npath = corpus/a.txt\n", []string{`j.toml:2:8: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`}},
	{"bare text like a keyword", "[data]\npath = file.txt\n", []string{`j.toml:2:8: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`}},
	{"no value", text + "train.batch =\n", []string{`j.toml:2:14: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`}},
	{"no equals sign", text + "[train]\nbatch 64\n", []string{`j.toml:3:7: expected '=' after key`}},
	{"header not closed", text + "[train\nbatch = 64\n", []string{`j.toml:2:7: expected ']' to close table name`}},
	{"list not closed", text + "[optimizer]\nbetas = [0.9, 0.95\nlr = 1e-3\n", []string{`j.toml:4:1: expected ',' or ']' after array value`}},
	{"two slips", text + "name = x\ntrain.batch = 64\ntrain.seed 7\n", []string{
		`j.toml:2:8: this is not a TOML value (text needs quotes, as in "corpus/a.txt")`, `j.toml:4:12: expected '=' after key`}},
	{"leading zero", text + "train.batch = 064\n", []string{`j.toml:2:15: integers cannot have leading zeroes`}},
	{"binary", text + "\x00\x01\n", []string{`j.toml:2:1: invalid character at start of key: U+0000`}},

	// addresses
	{"port alone", text + "cluster.listen = \"7077\"\n", []string{`j.toml:2:18: cluster.listen: "7077" is no address with a port (as in ":7077" or "10.0.0.1:7077")`}},
	{"port nobody knows", text + "cluster.listen = \":0\"\n", []string{`j.toml:2:18: cluster.listen: ":0" is no address with a port (as in ":7077" or "10.0.0.1:7077")`}},

	// unknown names
	{"slip in a key", text + "[train]\nbacth = 64\n", []string{`j.toml:3:1: train.bacth: unknown key (did you mean train.batch?)`}},
	{"slip in a table", text + "[trian]\nbatch = 64\n", []string{`j.toml:2:2: unknown table [trian] (did you mean [train]?)`}},
	{"other table", text + "[train]\nlr = 1e-3\n", []string{`j.toml:3:1: train.lr: unknown key (did you mean optimizer.lr?)`}},
	{"no table", "batch = 64\n" + text, []string{`j.toml:1:1: batch: unknown key (did you mean train.batch?)`}},
	{"other trainer's name", text + "[train]\nmax_iters = 5\n[optimizer]\nlearning_rate = 1\n", []string{
		`j.toml:3:1: train.max_iters: unknown key (did you mean train.max_steps?)`,
		`j.toml:5:1: optimizer.learning_rate: unknown key (did you mean optimizer.lr?)`}},
	{"nothing near", text + "[train]\nzebra = 5\n", []string{`j.toml:3:1: train.zebra: unknown key`}},
	{"control characters in a key", text + "\"\\u001b[31m\\n\" = 1\n", []string{`j.toml:2:1: \x1b[31m\n: unknown key`}},
	{"slip in table and key", text + "trian.bacth = 1\n", []string{`j.toml:2:1: trian.bacth: unknown key (did you mean train.batch?)`}},
	{"deeper than a key", text + "[train.batch]\nx = 1\n", []string{`j.toml:2:2: train.batch: is a key, not a table`}},
	{"key below a key", text + "train.batch.x = 1\n", []string{`j.toml:2:1: train.batch.x: unknown key (did you mean train.batch?)`}},
	{"table as a value", text + "train = 5\n", []string{`j.toml:2:9: train: is a table, not an integer (write its keys below [train])`}},
	{"table as a list", text + "[[train]]\nbatch = 8\n", []string{`j.toml:2:3: table [train] is not a list (write [train])`}},
	{"nodes as a table", text + "[cluster.nodes]\nhost = \"a\"\n", []string{`j.toml:2:2: cluster.nodes: is a list of tables (write [[cluster.nodes]])`}},
	{"column in characters", "name = \"é\"; x = 1\n", []string{`j.toml:1:11: expected newline but got U+003B ';'`}},

	// twice
	{"key twice", text + "[train]\nbatch = 64\nbatch = 32\n", []string{`j.toml:4:1: train.batch: is set twice, first in line 3`}},
	{"table twice", text + "[train]\nbatch = 64\n[train]\nseed = 1\n", []string{`j.toml:4:2: table [train] is there twice, first in line 2`}},
	{"inline table and header", text + "train = { batch = 64 }\n[train]\nseed = 1\n", []string{`j.toml:3:2: table [train] is there twice, first in line 2`}},
	{"nodes twice", text + "[cluster]\nnodes = []\nnodes = []\n", []string{`j.toml:4:1: cluster.nodes: is set twice, first in line 3`}},

	// types
	{"text for an integer", text + "train.batch = \"64\"\n", []string{`j.toml:2:15: train.batch: must be an integer, not a string (write it without quotes)`}},
	{"fraction for an integer", text + "train.batch = 64.5\n", []string{`j.toml:2:15: train.batch: must be an integer, not a number with a fraction`}},
	{"integer for text", text + "name = 5\n", []string{`j.toml:2:8: name: must be a string, not an integer (write "5")`}},
	{"boolean as text", text + "model.tied = \"true\"\n", []string{`j.toml:2:14: model.tied: must be true or false, not a string (write it without quotes)`}},
	{"boolean as integer", text + "model.bias = 1\n", []string{`j.toml:2:14: model.bias: must be true or false, not an integer`}},
	{"list for a number", text + "optimizer.lr = [1e-3]\n", []string{`j.toml:2:1: optimizer.lr: must be a number, not a list`}},
	{"number for a list", text + "optimizer.betas = 0.9\n", []string{`j.toml:2:19: optimizer.betas: must be a list of 2 numbers, not a number with a fraction`}},
	{"list of three", text + "optimizer.betas = [0.9, 0.95, 0.99]\n", []string{`j.toml:2:1: optimizer.betas: must be a list of 2 numbers, not of 3`}},
	{"duration as integer", text + "snapshot.every = 10\n", []string{`j.toml:2:18: snapshot.every: must be a duration, not an integer (write it as "90s", "10m" or "1h30m")`}},
	{"duration without unit", text + "recovery.window = \"90\"\n", []string{`j.toml:2:19: recovery.window: must be a duration, not "90" (write it as "90s", "10m" or "1h30m")`}},
	{"ranks as text", text + "cluster.ranks = \"two\"\n", []string{`j.toml:2:17: cluster.ranks: must be an integer or "auto", not a string`}},
	{"date", text + "name = 2025-01-01\n", []string{`j.toml:2:8: name: must be a string, not a date or time (write "2025-01-01")`}},
	{"huge integer", text + "train.batch = 99999999999999999999\n", []string{`j.toml:2:15: train.batch: is not an integer of 64 bits: 99999999999999999999`}},

	// ranges
	{"batch of none", text + "train.batch = 0\n", []string{`j.toml:2:15: train.batch: must be 1 to 1048576, not 0`}},
	{"negative seed", text + "train.seed = -1\n", []string{`j.toml:2:14: train.seed: must be at least 0, not -1`}},
	{"shards of six", text + "train.shards = 6\ntrain.batch = 36\n", []string{`j.toml:2:16: train.shards: must be a power of two, not 6`}},
	{"no learning", text + "optimizer.lr = 0\n", []string{`j.toml:2:16: optimizer.lr: must be above 0, not 0`}},
	{"infinite rate", text + "optimizer.lr = inf\n", []string{`j.toml:2:16: optimizer.lr: must be finite, not inf`}},
	{"rate beyond floats", text + "optimizer.lr = 1e999\n", []string{`j.toml:2:16: optimizer.lr: must be finite, not 1e999`}},
	{"not a rate", text + "optimizer.weight_decay = nan\n", []string{`j.toml:2:26: optimizer.weight_decay: must be finite, not nan`}},
	{"negative decay", text + "optimizer.weight_decay = -0.1\n", []string{`j.toml:2:26: optimizer.weight_decay: must be at least 0, not -0.1`}},
	{"beta of one", text + "optimizer.betas = [0.9, 1.0]\n", []string{`j.toml:2:25: optimizer.betas: must be at least 0 and below 1, not 1.0`}},
	{"all dropped", text + "model.dropout = 1\n", []string{`j.toml:2:17: model.dropout: must be at least 0 and below 1, not 1`}},
	{"empty block", text + "model.block_size = 0\n", []string{`j.toml:2:20: model.block_size: must be 1 to 1048576, not 0`}},
	{"split of nothing", text + "data.split = 0\n", []string{`j.toml:2:14: data.split: must be above 0 and at most 1, not 0`}},
	{"no window", text + "recovery.window = \"0s\"\n", []string{`j.toml:2:19: recovery.window: must be at least 1s, not 0s`}},
	{"too often", text + "snapshot.every = \"10ms\"\n", []string{`j.toml:2:18: snapshot.every: must be at least 1s, or 0 for never, not 10ms`}},
	{"no ranks", text + "cluster.ranks = 0\n", []string{`j.toml:2:17: cluster.ranks: must be 1 to 4096, not 0`}},
	{"folder as a name", text + "name = \"../x\"\n", []string{`j.toml:2:8: name: must be of letters, digits and ._- and begin with a letter or digit`}},
	{"empty path", "data.path = \"\"\n", []string{`j.toml:1:13: data.path: must not be empty`}},

	// choices
	{"device", text + "device = \"gpu\"\n", []string{`j.toml:2:10: device: must be "auto" or "cpu", not "gpu" (did you mean "cpu"?)`}},
	{"device of a later version", text + "device = \"cuda\"\n", []string{`j.toml:2:10: device: cuda is not available yet; use cpu`}},
	{"schedule", text + "optimizer.schedule = \"cosin\"\n", []string{`j.toml:2:22: optimizer.schedule: must be "constant", "linear" or "cosine", not "cosin" (did you mean "cosine"?)`}},
	{"preset", text + "model.preset = \"gpt-mirco\"\n", []string{`j.toml:2:16: model.preset: must be ` + quotedList(model.Presets()) + `, not "gpt-mirco" (did you mean "gpt-micro"?)`}},
	{"tokenizer", text + "data.tokenizer = \"chars\"\n", []string{`j.toml:2:18: data.tokenizer: must be "char", "byte" or the path of a tokenizer, not "chars" (did you mean "char"?)`}},

	// not yet
	{"no such recovery", text + "[recovery]\nmode = \"lively\"\n", []string{`j.toml:3:8: recovery.mode: must be "live" or "restart", not "lively" (did you mean "live"?)`}},
	{"tokens", "data.source = \"tokens\"\n", []string{`j.toml:1:15: data.source: source "tokens" is not available yet; use text`}},
	{"gpt2", text + "data.tokenizer = \"gpt2\"\n", []string{`j.toml:2:18: data.tokenizer: "gpt2" is not part of ddp (name the folder of its vocab.json and merges.txt, as in "./gpt2")`}},
	{"bfloat16", text + "train.precision = \"bfloat16\"\n", []string{`j.toml:2:19: train.precision: bfloat16 is not available yet; use float32`}},

	// nodes
	{"node without host", text + "cluster.nodes = [{ ranks = 2 }]\n", []string{`j.toml:2:18: cluster.nodes: the node has no host`}},
	{"slip in a node", text + "[[cluster.nodes]]\nhots = \"a\"\nhost = \"a\"\n", []string{`j.toml:3:1: cluster.nodes: a node has no key "hots" (did you mean host?)`}},
	{"option as a host", text + "cluster.nodes = [{ host = \"-oProxyCommand=x\" }]\n", []string{`j.toml:2:27: cluster.nodes: "-oProxyCommand=x" is not a host name (a name, an address or user@name, without options)`}},
	{"host twice", text + "cluster.nodes = [{ host = \"a\" }, { host = \"a\" }]\n", []string{`j.toml:2:34: cluster.nodes: host "a" is listed twice`}},
	{"ranks and gpus", text + "cluster.nodes = [{ host = \"a\", ranks = 1, gpus = [0] }]\n", []string{`j.toml:2:18: cluster.nodes: the node has both ranks and gpus (give one: a rank runs on each GPU)`}},
	{"gpu twice", text + "cluster.nodes = [{ host = \"a\", gpus = [0, 0] }]\n", []string{`j.toml:2:43: cluster.nodes: GPU 0 is listed twice`}},
	{"node as text", text + "cluster.nodes = [\"a\"]\n", []string{`j.toml:2:18: cluster.nodes: a node must be a table, not a string (as in { host = "a", ranks = 4 })`}},
	{"nodes as text", text + "cluster.nodes = \"a\"\n", []string{`j.toml:2:17: cluster.nodes: must be a list of tables, not a string (as in [{ host = "a", ranks = 4 }])`}},
	{"key of a node twice", text + "[[cluster.nodes]]\nhost = \"a\"\nhost = \"b\"\n", []string{`j.toml:4:1: cluster.nodes: "host" is set twice for the same node`}},

	// combinations
	{"text without path", "[data]\ntokenizer = \"byte\"\n", []string{`j.toml:1:2: data.path: is needed for source "text" (name a file, a folder or a pattern)`}},
	{"no data at all", "[train]\nbatch = 64\n", []string{`j.toml:1:1: data.path: is needed for source "text" (name a file, a folder or a pattern)`}},
	{"shards against batch", text + "[train]\nbatch = 12\nshards = 8\n", []string{`j.toml:4:1: train.shards: 8 does not divide batch = 12`}},
	{"more ranks than shards", text + "[cluster]\nranks = 4\n[train]\nbatch = 2\n", []string{
		`j.toml:3:1: cluster.ranks: 4 ranks cannot share 2 shards (use fewer ranks, or more train.shards (a power of two that divides train.batch))`}},
	{"more nodes than shards", text + "[[cluster.nodes]]\nhost = \"a\"\nranks = 8\n[[cluster.nodes]]\nhost = \"b\"\ngpus = [0]\n", []string{
		`j.toml:2:3: cluster.nodes: 9 ranks cannot share 8 shards (use fewer ranks, or more train.shards (a power of two that divides train.batch))`}},
	{"heads against channels", text + "[model]\nn_layer = 2\nn_head = 5\nn_embd = 128\n", []string{`j.toml:4:1: model.n_head: 5 does not divide n_embd = 128`}},
	{"preset and sizes", text + "[model]\npreset = \"gpt-nano\"\nn_embd = 128\n", []string{`j.toml:4:1: model.n_embd: contradicts model.preset (give one of them)`}},
	{"size alone", text + "[model]\nn_layer = 2\n", []string{
		`j.toml:3:1: model.n_head: is missing beside n_layer (give n_layer, n_head and n_embd, or a preset)`,
		`j.toml:3:1: model.n_embd: is missing beside n_layer (give n_layer, n_head and n_embd, or a preset)`}},
	{"steps and epochs", text + "[train]\nmax_steps = 5\nmax_epochs = 1\n", []string{`j.toml:4:1: train.max_epochs: contradicts train.max_steps (give one of them)`}},
	{"warm-up beyond the end", text + "[train]\nmax_steps = 5\n[optimizer]\nwarmup_steps = 50\n", []string{`j.toml:5:1: optimizer.warmup_steps: 50 is above max_steps = 5`}},
	{"warm-up beyond the decay", text + "[optimizer]\nwarmup_steps = 50\ndecay_steps = 40\n", []string{`j.toml:3:1: optimizer.warmup_steps: 50 is above decay_steps = 40`}},
	{"rates upside down", text + "[optimizer]\nlr = 1e-4\nmin_lr = 1e-3\n", []string{`j.toml:4:1: optimizer.min_lr: 0.001 is above lr = 0.0001`}},
	{"nodes upside down", text + "[cluster]\nmin_nodes = 3\nmax_nodes = 2\n", []string{`j.toml:3:1: cluster.min_nodes: 3 is above max_nodes = 2`}},
	{"gpus on a cpu", text + "device = \"cpu\"\n[[cluster.nodes]]\nhost = \"a\"\ngpus = [0]\n", []string{`j.toml:3:3: cluster.nodes: lists gpus, but device is "cpu" (give ranks instead)`}},
	{"digits of a text", text + "data.digits = 3\n", []string{`j.toml:2:1: data.digits: means nothing to source "text" (it is for source "adder")`}},
	{"path of the adder", text + "data.source = \"adder\"\n", []string{`j.toml:1:1: data.path: means nothing to source "adder" (it is for source "text")`}},
	{"block of the adder", "[data]\nsource = \"adder\"\n[model]\nblock_size = 128\n", []string{`j.toml:4:1: model.block_size: is 128, but the sequences of source "adder" are 6 long (leave it out)`}},

	// all at once, each said once, sorted
	{"many", "[optimizer]\nlr = -1\n[train]\nbatch = \"x\"\nshards = 3\nseeed = 1\n[modle]\npreset = 5\n[data]\nsplit = 2\n", []string{
		`j.toml:2:6: optimizer.lr: must be above 0, not -1`,
		`j.toml:4:9: train.batch: must be an integer, not a string`,
		`j.toml:5:10: train.shards: must be a power of two, not 3`,
		`j.toml:6:1: train.seeed: unknown key (did you mean train.seed?)`,
		`j.toml:7:2: unknown table [modle] (did you mean [model]?)`,
		`j.toml:9:2: data.path: is needed for source "text" (name a file, a folder or a pattern)`,
		`j.toml:10:9: data.split: must be above 0 and at most 1, not 2`,
	}},
}

func checkProblems(t *testing.T, name string, err error, want []string) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) {
		t.Errorf("%s: error %v is not Problems", name, err)
		return
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, strings.Join(want, "\n"))
	}
}

func TestBrokenFiles(t *testing.T) {
	for _, c := range broken {
		_, err := Parse("j.toml", []byte(c.file), nil)
		checkProblems(t, c.name, err, c.want)
	}
}

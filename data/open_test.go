package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sentence = "the quick brown fox jumps over the lazy dog\n"

// folder lays out files and returns to relative paths inside it.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func textConfig(path string) Config {
	return Config{Source: "text", Path: path, Tokenizer: "char", Split: 0.9, BlockSize: 8, Seed: 1}
}

func TestReadTextOrder(t *testing.T) {
	folder(t, map[string]string{
		"c/b.txt": "B", "c/a.md": "A", "c/z/deep.TXT": "D", "c/e.csv": "E",
		"c/.hidden.txt": "H", "c/.git/x.txt": "G", "c/z.txt": "Z",
	})
	for path, want := range map[string]string{
		"c": "ABZD", "c/e.csv": "E",
		"c/*":      "HABEZ", // a glob takes all that it names
		"c/[ab].*": "AB", "c/*/deep.*": "D",
	} {
		if got, err := readText(path, true); err != nil || got != want {
			t.Errorf("%s reads %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestGlobCharactersInAName(t *testing.T) {
	folder(t, map[string]string{"odd[1].txt": "X"})
	if got, err := readText("odd[1].txt", true); err != nil || got != "X" {
		t.Errorf("reads %q, %v", got, err)
	}
}

func TestOpenText(t *testing.T) {
	folder(t, map[string]string{"a.txt": strings.Repeat(sentence, 10)})
	set := mustOpen(t, textConfig("a.txt"))
	if set.VocabSize() != 28 || set.BlockSize() != 8 {
		t.Fatalf("V %d, T %d", set.VocabSize(), set.BlockSize())
	}
	// 440 tokens, 396 to train on: starts up to 387, less 7 for the phase.
	if set.TrainLen() != 48 || set.ValLen() != 6 {
		t.Errorf("%d training and %d validation windows", set.TrainLen(), set.ValLen())
	}
	x, y := make([]int32, 8), make([]int32, 8)
	set.Val(0, x, y)
	if got := set.Tokenizer.Decode(append(x[:1], y...)); got != sentence[:9] {
		t.Errorf("validation begins with %q", got)
	}
}

func TestSavedTokenizer(t *testing.T) {
	saved, err := NewCharTokenizer(sentence + "0123456789").Marshal()
	if err != nil {
		t.Fatal(err)
	}
	folder(t, map[string]string{
		"a.txt": strings.Repeat(sentence, 10), "tokens.json": string(saved),
		"upper.txt": strings.ToUpper(strings.Repeat(sentence, 10)), "broken.json": "{",
	})
	c := textConfig("a.txt")
	c.Tokenizer = "./tokens.json"
	if set := mustOpen(t, c); set.VocabSize() != 38 {
		t.Errorf("V %d", set.VocabSize())
	}
}

func TestDigest(t *testing.T) {
	folder(t, map[string]string{
		"a.txt": strings.Repeat(sentence, 10), "b.txt": strings.Repeat(sentence, 10),
		"c.txt": strings.Repeat(sentence, 9) + strings.ToUpper(sentence),
	})
	base := mustOpen(t, textConfig("a.txt")).Digest()
	change := func(name string, same bool, edit func(*Config)) {
		c := textConfig("a.txt")
		edit(&c)
		if got := mustOpen(t, c).Digest() == base; got != same {
			t.Errorf("%s: same digest %t, want %t", name, got, same)
		}
	}
	change("path", true, func(c *Config) { c.Path = "b.txt" })
	change("seed", true, func(c *Config) { c.Seed = 2 })
	change("stride as by default", true, func(c *Config) { c.Stride = 8 })
	change("content", false, func(c *Config) { c.Path = "c.txt" })
	change("tokenizer", false, func(c *Config) { c.Tokenizer = "byte" })
	change("split", false, func(c *Config) { c.Split = 0.8 })
	change("block", false, func(c *Config) { c.BlockSize = 7 })
	change("stride", false, func(c *Config) { c.Stride = 7 })
	two := mustOpen(t, Config{Source: "adder", Digits: 2}).Digest()
	if three := mustOpen(t, Config{Source: "adder", Digits: 3}).Digest(); two == three {
		t.Error("adders of 2 and 3 digits have the same digest")
	}
}

func TestBrokenData(t *testing.T) {
	folder(t, map[string]string{
		"a.txt": strings.Repeat(sentence, 10), "empty.txt": "", "short.txt": "abcdefgh",
		"same.txt": strings.Repeat("a", 400), "latin.txt": "first\ncaf\xe9\n", "cut.txt": "ab\xe6\x97",
		"folder/x.csv": "1,2", "empties/a.txt": "", "empties/b.md": "", "mixed/a.txt": "ok", "mixed/b.txt": "\x80",
		"broken.json": "{", "ab.json": `{"kind":"char","symbols":"ab"}`, "tight.txt": "abcdefghij",
	})
	if err := os.Symlink("nowhere", "dangling.txt"); err != nil {
		t.Fatal(err)
	}
	text := func(path string, edit ...func(*Config)) Config {
		c := textConfig(path)
		for _, e := range edit {
			e(&c)
		}
		return c
	}
	tokenizer := func(name string) func(*Config) { return func(c *Config) { c.Tokenizer = name } }
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Source: "video"}, `unknown data source "video": it is text, adder or sort`},
		{text(""), `source "text" needs a path (set data.path)`},
		{text("nope.txt"), `nope.txt: cannot be read: no such file or directory`},
		{text("dangling.txt"), `dangling.txt: cannot be read: no such file or directory`},
		{text("a.txt/b"), `a.txt/b: cannot be read: not a directory`},
		{text("/dev/null"), `/dev/null: is neither a file nor a folder`},
		{text("empty.txt"), `empty.txt: holds no text: it is empty`},
		{text("empties"), `empties: holds no text: it is empty`},
		{text("short.txt"), `short.txt: 7 of 8 tokens are for training, but one window takes 9 (use a longer text, a larger data.split or a smaller model.block_size)`},
		{text("tight.txt"), `tight.txt: 1 of 10 tokens are for validation, but at least 2 are needed (use a longer text, a smaller data.split, or split = 1 for no validation)`},
		{text("same.txt"), `same.txt: has only one symbol, "a": there is nothing to learn`},
		{text("latin.txt"), `latin.txt: byte 9 (line 2) is not UTF-8: 0xe9 (save it as UTF-8, or use tokenizer = "byte")`},
		{text("cut.txt"), `cut.txt: byte 2 (line 1) is not UTF-8: 0xe6 (save it as UTF-8, or use tokenizer = "byte")`},
		{text("mixed"), `mixed/b.txt: byte 0 (line 1) is not UTF-8: 0x80 (save it as UTF-8, or use tokenizer = "byte")`},
		{text("folder"), `folder: the folder holds no .txt or .md file (for files of other names give a pattern, such as folder/*.csv)`},
		{text("*.html"), `*.html: no file matches the pattern`},
		{text("fold*"), `fold*: no file matches the pattern`},
		{text("[a"), `[a: the pattern is malformed`},
		{text("a.txt", tokenizer("nope.json")), `nope.json: cannot be read: no such file or directory`},
		{text("a.txt", tokenizer("folder")), `folder: the folder holds no tokenizer: neither tokenizer.json nor vocab.json and merges.txt`},
		{text("a.txt", tokenizer("broken.json")), `broken.json: read tokenizer: unexpected EOF`},
		{text("a.txt", tokenizer("ab.json")), `a.txt: character 't' at position 0 is not in the tokenizer's 2 symbols`},
		{text("a.txt", func(c *Config) { c.BlockSize = 0 }), `a text needs a block size of at least 1, not 0`},
		{text("a.txt", func(c *Config) { c.Split = 1.5 }), `the training share must be above 0 and at most 1, not 1.5`},
		{text("a.txt", func(c *Config) { c.Stride = -1 }), `the stride must not be negative, it is -1`},
		{Config{Source: "adder", Digits: 0}, `the adder takes 1 to 6 digits, not 0`},
		{Config{Source: "adder", Digits: 7}, `the adder takes 1 to 6 digits, not 7`},
		{Config{Source: "adder", Digits: 2, BlockSize: 128}, `the sequences of adder are 6 long, not 128 (leave model.block_size out)`},
		{Config{Source: "sort", Length: 1, Symbols: 3}, `sort takes a length of 2 to 18, not 1`},
		{Config{Source: "sort", Length: 6, Symbols: 11}, `sort takes 2 to 10 symbols, not 11`},
	} {
		set, err := Open(c.config)
		if err == nil {
			t.Errorf("%+v opens as %s", c.config, set.Name())
			continue
		}
		var fault *Error
		if !errors.As(err, &fault) {
			t.Errorf("%v is not an *Error", err)
		}
		if err.Error() != c.want {
			t.Errorf("%s\nwant %s", err, c.want)
		}
	}
}

// Whatever the length and symbols, both sides of the split hold something or
// the fault is said; above all, drawing a training sequence ends.
func TestSmallestSorts(t *testing.T) {
	for length := MinLength; length <= 5; length++ {
		for symbols := MinSymbols; symbols <= 4; symbols++ {
			set, err := Open(Config{Source: "sort", Length: length, Symbols: symbols})
			if err != nil {
				want := "too few sequences"
				if !strings.Contains(err.Error(), want) {
					t.Errorf("length %d, %d symbols: %v", length, symbols, err)
				}
				continue
			}
			x, y := make([]int32, set.BlockSize()), make([]int32, set.BlockSize())
			set.Train(0, 0, x, y)
		}
	}
}

package data

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// originals is what testdata/bpegolden.py writes.
type originals struct {
	Text    string
	Strings []originalString
	Trained []struct {
		Size, Least int
		File        string // tokenizer.json
	}
}

// originalString is a string, its tokens as ordinary text, and with special tokens.
type originalString struct {
	text         string
	plain, marks []int32
}

func (g *originalString) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&g.text, &g.plain, &g.marks})
}

// allOriginals is what was committed and, where the libraries are installed, a fresh
// run of another seed. DDP_BPE_SEED and DDP_BPE_STRINGS make the fresh one another.
func allOriginals(t *testing.T) map[string]originals {
	t.Helper()
	file, err := os.Open("testdata/bpegolden.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]originals{"committed": readOriginals(t, text)}
	if exec.Command("python3", "-c", "import tokenizers, tiktoken").Run() == nil {
		seed, count := setting("DDP_BPE_SEED", 2), setting("DDP_BPE_STRINGS", 500)
		script := exec.Command("python3", "testdata/bpegolden.py", seed, count)
		var complaint strings.Builder
		script.Stderr = &complaint
		if text, err = script.Output(); err != nil {
			t.Fatalf("bpegolden.py: %v\n%s", err, complaint.String())
		}
		all["fresh"] = readOriginals(t, text)
	}
	return all
}

func setting(name string, otherwise int) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return strconv.Itoa(otherwise)
}

func readOriginals(t *testing.T, text []byte) originals {
	t.Helper()
	var g originals
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestBPEAgainstTheOriginals: what is learnt and what is encoded equal Hugging
// Face's tokenizers and tiktoken, to the token.
func TestBPEAgainstTheOriginals(t *testing.T) {
	for name, g := range allOriginals(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "text.txt")
			if err := os.WriteFile(path, []byte(g.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			var trained []*BPE
			for _, c := range g.Trained {
				tok, err := TrainBPE([]string{path}, BPEOptions{Size: c.Size, MinFrequency: c.Least})
				if err != nil {
					t.Fatal(err)
				}
				saved, err := tok.Marshal()
				if err != nil {
					t.Fatal(err)
				}
				if !sameJSON(t, saved, []byte(c.File)) {
					t.Errorf("%d tokens of frequency %d: another vocabulary than BpeTrainer's", c.Size, c.Least)
				}
				trained = append(trained, tok)
			}
			for i, s := range g.Strings {
				encodesAs(t, trained[i%len(trained)], s)
			}
			t.Logf("%d vocabularies, %d strings", len(trained), len(g.Strings))
		})
	}
}

func encodesAs(t *testing.T, tok *BPE, want originalString) {
	t.Helper()
	plain, err := tok.Encode(want.text)
	if err != nil || !slices.Equal(plain, want.plain) {
		t.Errorf("%q is %v, %v; want %v", want.text, plain, err, want.plain)
	}
	marks, err := tok.EncodeSpecial(want.text, tok.Special()...)
	if err != nil || !slices.Equal(marks, want.marks) {
		t.Errorf("%q with special tokens is %v, %v; want %v", want.text, marks, err, want.marks)
	}
	for _, tokens := range [][]int32{plain, marks} {
		if got := tok.Decode(tokens); got != want.text {
			t.Errorf("%q comes back as %q", want.text, got)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// tinyBPE is a BPE of 300 tokens of the sentence.
func tinyBPE(t *testing.T) *BPE {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat(sentence, 3)), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := TrainBPE([]string{path}, BPEOptions{Size: 280})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestBPEPieces are the corners of GPT-2's pattern.
func TestBPEPieces(t *testing.T) {
	for text, want := range map[string]string{
		"it's":        "it|'s",
		"IT'S":        "IT|'|S",
		"we'll 'll":   "we|'ll| '|ll",
		"''s'":        "''|s|'",
		"a  b":        "a| | b",
		"a \n b":      "a| \n| b",
		"a\n\nb":      "a|\n|\n|b",
		"a  ":         "a|  ",
		" ":           " ",
		" \t":         " \t",
		"x1 22½":      "x|1| 22½",
		"a\u00a0b":    "a|\u00a0|b",
		"a\u2003 b":   "a|\u2003| b",
		"é日本 λ!":      "é日本| λ|!",
		"e\u0301":     "e|\u0301",
		"\xff\xfea":   "\xff\xfe|a",
		"\U00010d4a1": "\U00010d4a|1", // a letter since Unicode 16
	} {
		var pieces []string
		for rest := text; rest != ""; {
			n := splitter(classTable()).piece(rest)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if got := strings.Join(pieces, "|"); got != want {
			t.Errorf("%q is cut as %q, want %q", text, got, want)
		}
	}
}

func TestBPESpecialTokens(t *testing.T) {
	tok := tinyBPE(t)
	const text = "a" + EndOfText + EndOfText + "b<|end"
	plain, err := tok.Encode(text)
	if err != nil || slices.Contains(plain, 0) {
		t.Errorf("ordinary text is %v, %v", plain, err)
	}
	marked, err := tok.EncodeSpecial(text, EndOfText)
	if err != nil || marked[1] != 0 || marked[2] != 0 || tok.Decode(marked) != text {
		t.Errorf("with the special token %v, %v", marked, err)
	}
	if _, err := tok.EncodeSpecial(text, "<|pad|>"); err == nil || err.Error() != `"<|pad|>" is no special token of the tokenizer` {
		t.Errorf("an unknown special token: %v", err)
	}
	if got := tok.Decode([]int32{0, -1, 1 << 30}); got != EndOfText+"\uFFFD\uFFFD" {
		t.Errorf("decoded as %q", got)
	}
}

// TestBPELongestSpecialToken: of special tokens that begin at one place the longest counts.
func TestBPELongestSpecialToken(t *testing.T) {
	names := []string{"<x>", "<x><y>", "<y>"}
	special := slices.Clone(names)
	for _, c := range byteNames {
		names = append(names, string(c))
	}
	tok, err := newBPE(bpeParts{names: names, special: special})
	if err != nil {
		t.Fatal(err)
	}
	got, err := tok.EncodeSpecial("<y><x><y><x>", special...)
	if err != nil || !slices.Equal(got, []int32{2, 1, 0}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestBPELongPieces: a piece of a million letters takes no time that grows with
// its square, and a cache that is full begins anew.
func TestBPELongPieces(t *testing.T) {
	tok := tinyBPE(t)
	long := strings.Repeat("thequickbrownfox", 1<<16)
	var many strings.Builder
	for i := range maxCachedPieces + 1000 {
		many.WriteString(" " + strconv.Itoa(i))
	}
	for _, text := range []string{long, many.String(), many.String()} {
		tokens, err := tok.Encode(text)
		if err != nil || tok.Decode(tokens) != text {
			t.Errorf("%.20q... does not come back, %v", text, err)
		}
	}
}

func TestBPEConcurrently(t *testing.T) {
	tok := tinyBPE(t)
	want, err := tok.Encode(sentence)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan []int32)
	for range 8 {
		go func() {
			var got []int32
			for range 100 {
				got, _ = tok.Encode(sentence) // compared below
			}
			done <- got
		}()
	}
	for range 8 {
		if got := <-done; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// FuzzBPE: every text, UTF-8 or not, comes back byte for byte.
func FuzzBPE(f *testing.F) {
	path := filepath.Join(f.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(sentence), 0o644); err != nil {
		f.Fatal(err)
	}
	tok, err := TrainBPE([]string{path}, BPEOptions{Size: 270})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("it's the quick\n\n brown"))
	f.Add([]byte("\xf0\x9f\x98 \xff<|endoftext|>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, allowed := range [][]string{nil, {EndOfText}} {
			tokens, err := tok.EncodeSpecial(string(text), allowed...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Decode(tokens); !bytes.Equal([]byte(got), text) {
				t.Fatalf("%q comes back as %q", text, got)
			}
		}
	})
}

package data

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBPEFiles: all forms that Save writes read back to the same tokenizer,
// under the names that others give them too.
func TestBPEFiles(t *testing.T) {
	tok := tinyBPE(t)
	t.Chdir(t.TempDir())
	if err := tok.Save("made/tok"); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"vocab.json": "pair/vocab.json", "merges.txt": "pair/merges.txt", "tokenizer.json": "any.json",
	} {
		copyFile(t, filepath.Join("made/tok", from), to)
	}
	copyFile(t, "pair/vocab.json", "openai/encoder.json")
	copyFile(t, "pair/merges.txt", "openai/vocab.bpe")
	copyFile(t, "pair/vocab.json", "named/gpt2-vocab.json")
	copyFile(t, "pair/merges.txt", "named/gpt2-merges.txt")
	want, err := tok.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"made/tok", "made/tok/tokenizer.json", "made/tok/vocab.json", "made/tok/merges.txt", "any.json",
		"pair", "openai", "openai/vocab.bpe", "named/gpt2-vocab.json", "named/gpt2-merges.txt"} {
		read, err := OpenTokenizer(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := read.Marshal(); err != nil || string(got) != string(want) {
			t.Errorf("%s reads as another tokenizer, %v", path, err)
		}
	}
	err = tok.Save("made/tok")
	var fault *Error
	if !errors.As(err, &fault) || err.Error() != "made/tok/vocab.json: is there already (remove it, or name another folder)" {
		t.Errorf("saving twice: %v", err)
	}
	if err := tok.Save("any.json"); !errors.As(err, &fault) || err.Error() != "any.json: cannot be written: not a directory" {
		t.Errorf("saving into a file: %v", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTextBehindABPE opens a text behind a BPE, as a job does.
func TestTextBehindABPE(t *testing.T) {
	tok := tinyBPE(t)
	folder(t, map[string]string{"a.txt": strings.Repeat(sentence, 40)})
	if err := tok.Save("tok"); err != nil {
		t.Fatal(err)
	}
	c := textConfig("a.txt")
	c.Tokenizer = "./tok"
	set := mustOpen(t, c)
	if set.VocabSize() != 280 || set.Tokenizer.Name() != "bpe" {
		t.Errorf("%s of %d tokens", set.Tokenizer.Name(), set.VocabSize())
	}
	x, y := make([]int32, 8), make([]int32, 8)
	set.Train(0, 0, x, y)
	if got := set.Tokenizer.Decode(append(x, y...)); !strings.Contains(sentence+sentence, got[:8]) {
		t.Errorf("the first window reads %q", got)
	}
}

// hub is a tokenizer.json with one part exchanged.
func hub(old, new string) string {
	const file = `{"added_tokens":[{"id":2,"content":"<e>","special":true}],"normalizer":null,` +
		`"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},` +
		`"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":3},"merges":["a b"]}}`
	if strings.Count(file, old) != 1 {
		panic(old + " is not once in the file")
	}
	return strings.Replace(file, old, new, 1)
}

// TestOlderHubFile has merges of one string, and special tokens beside the vocabulary.
func TestOlderHubFile(t *testing.T) {
	tok, err := LoadTokenizer([]byte(hub("<e>", "<e>")))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tok.Encode("abba"); err != nil || !slices.Equal(got, []int32{3, 1, 0}) {
		t.Errorf("%v, %v", got, err)
	}
	_, err = tok.Encode("abc")
	var fault *Error
	if !errors.As(err, &fault) || err.Error() != "byte 0x63 at byte 2 is not in the tokenizer's 4 tokens" {
		t.Errorf("a byte without a token: %v", err)
	}
}

// TestBrokenBPEFiles wants one line for each, which names the file.
func TestBrokenBPEFiles(t *testing.T) {
	for _, c := range []struct{ vocab, merges, want string }{
		{`{"a":0,"b":1,"ab":2}`, "#version: 0.2\na b", ""},
		{`{"a":0,"b":1,"ab":2}`, "\r\na b\r\n", ""},
		{`{`, "a b", "vocab.json: read vocabulary: unexpected end of JSON input"},
		{`[]`, "a b", "vocab.json: read vocabulary: want an object from tokens to numbers"},
		{`{}`, "", "vocab.json: read vocabulary: the vocabulary is empty"},
		{`{"a":0,"b":2}`, "", "vocab.json: read vocabulary: token 1 is missing, of 2 tokens"},
		{`{"a":0,"b":0}`, "", `vocab.json: read vocabulary: tokens "a" and "b" both have the number 0`},
		{`{"a":-1}`, "", `vocab.json: read vocabulary: token "a" has the number -1, want 0 to 4194303`},
		{`{"a":99999999999}`, "", `vocab.json: read vocabulary: token "a" has the number 99999999999, want 0 to 4194303`},
		{`{"a":1.5}`, "", "vocab.json: read vocabulary: want an object from tokens to numbers"},
		{`{"":0}`, "", "merges.txt: does not fit vocab.json: token 0 is empty"},
		{`{"a":0,"b":1}`, "a b", `merges.txt: does not fit vocab.json: merge 1 ("a" and "b"): token "ab" is not in the vocabulary`},
		{`{"a":0}`, "a", `merges.txt: read merges: line 1: a merge is not two tokens with a blank between: "a"`},
		{`{"a":0}`, "#version\na b c", `merges.txt: read merges: line 2: a merge is not two tokens with a blank between: "a b c"`},
		{`{"a":0,"aa":1}`, "a a\n\na a", `merges.txt: read merges: line 2: a merge is not two tokens with a blank between: ""`},
		{`{"a":0,"aa":1}`, "a a\na a\n", `merges.txt: does not fit vocab.json: merge 2 ("a" and "a") repeats merge 1`},
	} {
		folder(t, map[string]string{"vocab.json": c.vocab, "merges.txt": c.merges})
		_, err := OpenTokenizer("vocab.json")
		wantFault(t, c.vocab+" "+c.merges, err, c.want)
	}
	folder(t, map[string]string{"vocab.json": "{}", "tok/a.txt": "a"})
	_, err := OpenTokenizer("vocab.json")
	wantFault(t, "no merges", err, "merges.txt: cannot be read: no such file or directory")
	_, err = OpenTokenizer("tok")
	wantFault(t, "no files", err, "tok: the folder holds no tokenizer: neither tokenizer.json nor vocab.json and merges.txt")
}

func TestBrokenHubFiles(t *testing.T) {
	const read = "t.json: read tokenizer: "
	for _, c := range []struct{ old, new, want string }{
		{`"BPE"`, `"Unigram"`, `the model is a "Unigram", want BPE`},
		{`"normalizer":null`, `"normalizer":{"type":"NFC"}`, "it has a normalizer, which GPT-2's tokenizer has not"},
		{`"ByteLevel"`, `"Whitespace"`, "the pre_tokenizer is not GPT-2's, ByteLevel with its own pattern"},
		{`"add_prefix_space":false`, `"use_regex":false`, "the pre_tokenizer is not GPT-2's, ByteLevel with its own pattern"},
		{`{"type":"ByteLevel","add_prefix_space":false}`, "null", "the pre_tokenizer is not GPT-2's, ByteLevel with its own pattern"},
		{`"add_prefix_space":false`, `"add_prefix_space":true`, "the pre_tokenizer puts a blank before each text: make it with add_prefix_space=False"},
		{`"type":"BPE"`, `"dropout":0.1`, "the model has a dropout of 0.1, want none"},
		{`"type":"BPE"`, `"end_of_word_suffix":"</w>"`, "the model marks the parts of words (continuing_subword_prefix, end_of_word_suffix), which GPT-2's does not"},
		{`"type":"BPE"`, `"ignore_merges":true`, "the model has byte_fallback or ignore_merges, which GPT-2's has not"},
		{`"special":true`, `"special":false`, `added token "<e>" is not a plain special token (special, not single_word, lstrip or rstrip)`},
		{`"id":2`, `"id":1`, `tokens "<e>" and "b" both have the number 1`},
		{`"id":2`, `"id":5`, `token 2 is missing, of 4 tokens`},
		{`["a b"]`, `["a  b"]`, `a merge is not two tokens with a blank between: "a  b"`},
		{`["a b"]`, `[["a"]]`, `a merge is not two tokens: ["a"]`},
		{`["a b"]`, `[3]`, `a merge is not two tokens: 3`},
		{`["a b"]`, `["b a"]`, `merge 1 ("b" and "a"): token "ba" is not in the vocabulary`},
		{`{"a":0,"b":1,"ab":3}`, `[]`, `want an object from tokens to numbers`},
		{`"id":2`, `"id":"2"`, `added_tokens.id must not be a string`},
	} {
		folder(t, map[string]string{"t.json": hub(c.old, c.new)})
		_, err := OpenTokenizer("./t.json")
		wantFault(t, c.new, err, "./"+read+c.want)
	}
}

func wantFault(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	var fault *Error
	if !errors.As(err, &fault) || err.Error() != want {
		t.Errorf("%s:\n%v\nwant\n%s", name, err, want)
	}
}

func TestTrainBPERefuses(t *testing.T) {
	folder(t, map[string]string{"a.txt": sentence, "empty.txt": "", "latin.txt": "caf\xe9"})
	for _, c := range []struct {
		paths []string
		o     BPEOptions
		want  string
	}{
		{nil, BPEOptions{Size: 300}, "no text to learn from"},
		{[]string{"a.txt"}, BPEOptions{Size: 256}, "the vocabulary must have 257 to 1048576 tokens, not 256"},
		{[]string{"a.txt"}, BPEOptions{Size: 300, MinFrequency: -1}, "the least frequency must not be negative, it is -1"},
		{[]string{"a.txt", "empty.txt"}, BPEOptions{Size: 300}, "empty.txt: holds no text: it is empty"},
		{[]string{"latin.txt"}, BPEOptions{Size: 300}, `latin.txt: byte 3 (line 1) is not UTF-8: 0xe9 (save it as UTF-8, or use tokenizer = "byte")`},
	} {
		_, err := TrainBPE(c.paths, c.o)
		wantFault(t, strings.Join(c.paths, " "), err, c.want)
	}
}

// sameAgain wants that a tokenizer survives its own files and encodes what it decodes.
func sameAgain(t *testing.T, tok *BPE) {
	t.Helper()
	saved, err := tok.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadTokenizer(saved)
	if err != nil {
		t.Fatalf("%s: %v", saved, err)
	}
	if twice, err := again.Marshal(); err != nil || string(twice) != string(saved) {
		t.Fatalf("%s changes to %s, %v", saved, twice, err)
	}
	for token := range int32(min(tok.VocabSize(), 1000)) {
		text := tok.Decode([]int32{token})
		if tokens, err := tok.EncodeSpecial(text, tok.Special()...); err == nil && tok.Decode(tokens) != text {
			t.Fatalf("%q comes back as %q", text, tok.Decode(tokens))
		}
	}
}

func FuzzHubFile(f *testing.F) {
	f.Add([]byte(hub("<e>", "<e>")))
	f.Add([]byte(hub(`"a b"`, `["a","b"]`)))
	f.Add([]byte(hub(`"BPE"`, `"BPE","dropout":null`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if tok, err := loadHubFile(text); err == nil {
			sameAgain(t, tok)
		}
	})
}

func FuzzVocabAndMerges(f *testing.F) {
	f.Add([]byte(`{"a":0,"b":1,"ab":2,"<|endoftext|>":3}`), []byte("#version: 0.2\na b\n"))
	f.Add([]byte(`{"Ġ":0,"Ċ":1}`), []byte("\r\n"))
	f.Fuzz(func(t *testing.T, vocab, merges []byte) {
		names, err := parseVocab(vocab)
		if err != nil {
			return
		}
		pairs, err := parseMerges(merges)
		if err != nil {
			return
		}
		if tok, err := newBPE(bpeParts{names: names, merges: pairs, guess: true}); err == nil {
			sameAgain(t, tok)
		}
	})
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddp/data"
)

// TestJobOnABPE learns a vocabulary, trains on its tokens, on one and two ranks
// to the same bits, and samples with nothing left but the snapshot.
func TestJobOnABPE(t *testing.T) {
	dir := tinyFolder(t)
	out, stderr := succeed(t, dir, "tokenizer", "text.txt", "--size", "300", "--out", "bpe")
	if out != "300 tokens in bpe: data.tokenizer = \"./bpe\"\n" || stderr != "" {
		t.Fatalf("%q, stderr %q", out, stderr)
	}
	const key = `data.tokenizer="./bpe"`
	checked, _ := succeed(t, dir, "check", "job.toml", "--json", "--set", key)
	var f forecast
	if err := json.Unmarshal([]byte(checked), &f); err != nil || f.Vocabulary != 300 {
		t.Errorf("check: %s, %v", checked, err)
	}
	train := []string{"run", "job.toml", "--json", "--set", key, "--set", "train.max_steps=12", "--set", "cluster.ranks="}
	hashes := map[string]bool{}
	for _, ranks := range []string{"1", "2"} {
		args := append([]string{}, train...)
		args[len(args)-1] += ranks
		hashes[start(t, dir, nil, append(args, "--fresh")...).finish().ParamsSHA256] = true
	}
	if len(hashes) != 1 || hashes[""] {
		t.Errorf("parameters of 1 and 2 ranks: %v", hashes)
	}
	for _, gone := range []string{"bpe", "text.txt"} {
		if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	sampleOf := []string{"sample", "job.toml", "--max-tokens", "40", "--temperature", "1"}
	text, _ := succeed(t, dir, append(sampleOf, "--prompt", "the light é")...)
	if !strings.HasPrefix(text, "the light é") || len(text) < len("the light é")+40 {
		t.Errorf("sample %q", text)
	}
	special, _ := succeed(t, dir, append(sampleOf, "--prompt", data.EndOfText, "--stop", data.EndOfText, "--special")...)
	if !strings.HasPrefix(special, data.EndOfText) {
		t.Errorf("sample %q", special)
	}
	code, stdout, stderr := execute(t, dir, append(sampleOf, "--prompt", "the", "--stop", data.EndOfText)...)
	if code != 2 || stdout != "" || !strings.Contains(stderr, "tokens, want one") {
		t.Errorf("exit code %d, %q, stderr %q", code, stdout, stderr)
	}
}

// TestTokenizerOfAShortText has fewer pairs than asked for.
func TestTokenizerOfAShortText(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "ab")
	out, stderr := succeed(t, dir, "tokenizer", "--size", "1000", "a.txt", "--out", "x/bpe")
	if out != "258 tokens in x/bpe: data.tokenizer = \"x/bpe\"\n" || stderr != "ddp: the text has no more pairs: 258 tokens instead of 1000\n" {
		t.Errorf("%q, stderr %q", out, stderr)
	}
}

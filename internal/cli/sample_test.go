package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trainedFolder holds tinyJob with its snapshots of steps 20, 25 and 30, which
// have learnt enough to write more than spaces.
func trainedFolder(t *testing.T) string {
	t.Helper()
	dir := tinyFolder(t)
	start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=30", "--set", "optimizer.lr=2e-2").finish()
	return dir
}

// sampled is what follows the prompt.
func sampled(t *testing.T, dir, prompt string, flags ...string) string {
	t.Helper()
	out, stderr := succeed(t, dir, append([]string{"sample", "job.toml", "--prompt", prompt}, flags...)...)
	rest, found := strings.CutPrefix(out, prompt)
	rest, ended := strings.CutSuffix(rest, "\n")
	if !found || !ended || stderr != "" {
		t.Fatalf("%q begins with %q: %v, ends the line: %v, stderr %q", out, prompt, found, ended, stderr)
	}
	return rest
}

// TestSampleOptions compares the ways of choosing tokens with each other.
func TestSampleOptions(t *testing.T) {
	dir := trainedFolder(t)
	hot := func(flags ...string) string {
		t.Helper()
		return sampled(t, dir, "the ", append([]string{"--max-tokens", "60", "--temperature", "1"}, flags...)...)
	}
	if one := hot("--seed", "1"); hot("--seed", "1") != one || hot("--seed", "2") == one || hot("--seed", "1", "--top-k", "0") != one ||
		hot("--seed", "1", "--top-k", "1000000") != one || hot("--seed", "1", "--top-p", "1") != one {
		t.Error("the seed does not decide, or filters that keep every token change the text")
	}
	greedy := sampled(t, dir, "the ", "--max-tokens", "60", "--temperature", "0", "--seed", "1")
	for _, same := range [][]string{{"--temperature", "0", "--seed", "2"}, {"--temperature", "1e-6", "--seed", "2"}, {"--top-k", "1", "--seed", "3"}, {"--top-p", "1e-6"}} {
		if got := hot(same...); got != greedy {
			t.Errorf("%v gives %q, greedy %q", same, got, greedy)
		}
	}
	if got := sampled(t, dir, "the ", "--max-tokens", "0"); got != "" {
		t.Errorf("no tokens are %q", got)
	}
	text := hot()
	symbol := text[30:31]
	if got, want := hot("--stop", symbol), text[:strings.Index(text, symbol)]; got != want {
		t.Errorf("stopping at %q gives %q, want %q", symbol, got, want)
	}
}

// TestSampleContext generates far past the block of 16: the model sees the last
// 16 symbols, of the prompt as well as of what it wrote.
func TestSampleContext(t *testing.T) {
	dir := trainedFolder(t)
	flags := []string{"--temperature", "1", "--seed", "7", "--max-tokens", "2000"}
	const last = "blue or both whe" // 16 symbols
	want := sampled(t, dir, last, flags...)
	if len(want) != 2000 {
		t.Errorf("%d symbols, want 2000", len(want))
	}
	for _, before := range []string{"n", "the light of rays is red and "} {
		if got := sampled(t, dir, before+last, flags...); got != want {
			t.Errorf("%q before the block changes what follows", before)
		}
	}
	if short := sampled(t, dir, last[1:], "--temperature", "0", "--max-tokens", "1"); len(short) != 1 {
		t.Errorf("%q", short)
	}
}

// TestSampleKnowsItsTokenizer needs no text, and draws no symbol but the text's.
func TestSampleKnowsItsTokenizer(t *testing.T) {
	dir := trainedFolder(t)
	if err := os.Remove(filepath.Join(dir, "text.txt")); err != nil {
		t.Fatal(err)
	}
	text := tinyText()
	for _, c := range sampled(t, dir, "the", "--temperature", "1e6", "--max-tokens", "500") {
		if !strings.ContainsRune(text, c) {
			t.Fatalf("%q is not in the text", c)
		}
	}
}

// TestSampleSnapshot takes the snapshot that is asked for, and the newest good
// one when none is.
func TestSampleSnapshot(t *testing.T) {
	dir := trainedFolder(t)
	of := func(flags ...string) string {
		t.Helper()
		return sampled(t, dir, "the", append([]string{"--temperature", "1", "--max-tokens", "90"}, flags...)...)
	}
	newest, older := of(), of("--snapshot", "snap/step-000000025")
	if of("--snapshot", "snap/step-000000030") != newest || older == newest {
		t.Errorf("after 30 steps %q, after 25 %q", newest, older)
	}
	flipBit(t, filepath.Join(dir, "snap/step-000000030/model.safetensors"))
	out, stderr := succeed(t, dir, "sample", "job.toml", "--prompt", "the", "--temperature", "1", "--max-tokens", "90")
	if out != "the"+older+"\n" || !strings.Contains(stderr, "ddp: snapshot passed over: snap/step-000000030: ") {
		t.Errorf("with a damaged snapshot %q, stderr %q", out, stderr)
	}
}

// TestSampleRefusals wants one line and the exit code, and nothing on stdout.
func TestSampleRefusals(t *testing.T) {
	dir := trainedFolder(t)
	flipBit(t, filepath.Join(dir, "snap/step-000000020/model.safetensors"))
	for _, c := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--prompt", "Queen"}, 2, "prompt: character 'Q' at position 0 is not in the tokenizer's 21 symbols"},
		{[]string{"--prompt", "the é"}, 2, "prompt: character 'é' at position 4 is not in the tokenizer's 21 symbols"},
		{[]string{"--prompt", "The"}, 2, "prompt: character 'T' at position 0 is not in the tokenizer's 21 symbols ('t' is)"},
		{[]string{"--prompt", "th\xff"}, 2, "prompt: byte 0xff at position 2 is not UTF-8"},
		{[]string{"--prompt", ""}, 2, "sample: the prompt is empty: give at least one symbol to continue"},
		{nil, 2, "sample: the prompt is empty: give at least one symbol to continue"}, // the job has none either
		{[]string{"--prompt", "the", "--stop", "en"}, 2, `stop: "en" is 2 tokens, want one`},
		{[]string{"--prompt", "the", "--stop", "Z"}, 2, "stop: character 'Z' at position 0 is not in the tokenizer's 21 symbols"},
		{[]string{"--prompt", "the", "--temperature", "-1"}, 2, "sample: temperature is -1, want a number of at least 0"},
		{[]string{"--prompt", "the", "--temperature", "nan"}, 2, "sample: temperature is NaN, want a number of at least 0"},
		{[]string{"--prompt", "the", "--top-k", "-1"}, 2, "sample: top-k is -1, want at least 0 (0: all)"},
		{[]string{"--prompt", "the", "--top-p", "1.5"}, 2, "sample: top-p is 1.5, want 0 to 1 (1: all)"},
		{[]string{"--prompt", "the", "--max-tokens", "-1"}, 2, "sample: max tokens is -1, want at least 0"},
		{[]string{"--prompt", "the", "--snapshot", "nowhere"}, 5, "snapshot nowhere: manifest.json: no such file or directory"},
		{[]string{"--prompt", "the", "--set", `snapshot.dir="nowhere"`}, 5, "no good snapshot in nowhere: train first with `ddp run`"},
	} {
		code, stdout, stderr := execute(t, dir, append([]string{"sample", "job.toml"}, c.flags...)...)
		if code != c.code || stdout != "" || stderr != "ddp: "+c.want+"\n" {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant\nddp: %s", c.flags, code, stdout, stderr, c.want)
		}
	}
	code, stdout, stderr := execute(t, dir, "sample", "job.toml", "--prompt", "the", "--snapshot", "snap/step-000000020")
	if code != 5 || stdout != "" || !strings.Contains(stderr, "model.safetensors") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a damaged snapshot: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestSampleDigits prompts a task that has no tokenizer.
func TestSampleDigits(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.toml"), strings.Replace(adderJob, `dir = ""`, `dir = "snap"`, 1))
	start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=2").finish()
	if sum := sampled(t, dir, "8550", "--max-tokens", "3", "--temperature", "0"); len(sum) != 3 || strings.Trim(sum, "0123456789") != "" {
		t.Errorf("%q are no 3 digits", sum)
	}
	if code, _, stderr := execute(t, dir, "sample", "job.toml", "--prompt", "85+50"); code != 2 || stderr != "ddp: prompt: character '+' at position 2 is not in the tokenizer's 10 symbols\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
}

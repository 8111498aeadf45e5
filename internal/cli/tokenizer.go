package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ddp/data"
)

var tokenizerCommand = command{
	name: "tokenizer", args: "TEXT... --size N --out DIR", summary: "learn a byte-level BPE from texts",
	details: `Learns a vocabulary of N tokens from texts (each a file, a folder of .txt and .md
files, or a pattern), as GPT-2's: 256 bytes, <|endoftext|> and merges of the most
frequent pairs. Writes tokenizer.json (Hugging Face's form), vocab.json and
merges.txt into DIR, which a job names as data.tokenizer; nothing is overwritten.

example:
  ddp tokenizer corpus/opticks.txt --size 2048 --out runs/bpe
  ddp run jobs/mingpt.toml --set 'data.tokenizer="runs/bpe"' --set 'snapshot.dir="runs/mingpt-bpe"'`,
	run: runTokenizer,
}

func runTokenizer(in *invocation) error {
	var o data.BPEOptions
	in.flags.IntVar(&o.Size, "size", 0, fmt.Sprintf("`N` tokens, %d to %d", data.MinBPE, data.MaxBPE))
	in.flags.IntVar(&o.MinFrequency, "min-frequency", 0, "a pair must occur `N` times to become a token")
	out := in.flags.String("out", "", "`DIR` to write to")
	paths, err := in.parse(-1)
	if err != nil {
		return err
	}
	switch {
	case len(paths) == 0:
		return usageError{fmt.Errorf("tokenizer: no text given (usage: ddp tokenizer %s)", in.cmd.args)}
	case o.Size == 0:
		return usageError{errors.New("tokenizer: --size is missing: how many tokens?")}
	case *out == "":
		return usageError{errors.New("tokenizer: --out is missing: which folder to write to?")}
	}
	bpe, err := data.TrainBPE(paths, o)
	if err != nil {
		return err
	}
	if err := bpe.Save(*out); err != nil {
		return err
	}
	if bpe.VocabSize() < o.Size {
		in.note(fmt.Sprintf("the text has no more pairs: %d tokens instead of %d", bpe.VocabSize(), o.Size))
	}
	fmt.Fprintf(in.stdout, "%d tokens in %s: data.tokenizer = %q\n", bpe.VocabSize(), *out, tokenizerPath(*out))
	return nil
}

// tokenizerPath is a path that a job file does not take for a tokenizer's name.
func tokenizerPath(dir string) string {
	if strings.ContainsAny(dir, "/.") {
		return dir
	}
	return "." + string(filepath.Separator) + dir
}

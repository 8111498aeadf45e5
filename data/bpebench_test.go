package data

import (
	"os"
	"sync"
	"testing"
)

// BenchmarkBPE encodes the text DDP_BENCH_TEXT with the tokenizer
// DDP_BENCH_TOKENIZER, each time with an empty cache; without them, small ones.
// internal/bench/bpe.py compares it with tiktoken.
func BenchmarkBPE(b *testing.B) {
	path, named := os.LookupEnv("DDP_BENCH_TEXT")
	if !named {
		path = "../README.md"
	}
	text, err := readText(path, true)
	if err != nil {
		b.Fatal(err)
	}
	tok, err := TrainBPE([]string{path}, BPEOptions{Size: 1000})
	if folder, named := os.LookupEnv("DDP_BENCH_TOKENIZER"); named && err == nil {
		var saved Tokenizer
		saved, err = OpenTokenizer(folder)
		tok, _ = saved.(*BPE) // nil fails below
	}
	if err != nil || tok == nil {
		b.Fatalf("no BPE: %v", err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.mergers = sync.Pool{New: func() any { return newMerger(tok) }} // nothing seen yet
		if _, err := tok.Encode(text); err != nil {
			b.Fatal(err)
		}
	}
}

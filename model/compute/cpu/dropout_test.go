package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ddp/model/compute"
)

// ones are n values of 1 in b's memory.
func ones(b compute.Backend, n int) compute.Buffer {
	x := b.Alloc(n)
	for i := range x.Host() {
		x.Host()[i] = 1
	}
	return x
}

// TestDropoutIsTheDefinedStream compares each element with Dropout.Keep, which
// is held against published vectors: all fields set, counters that wrap, rows
// that begin at every place of a group of four.
func TestDropoutIsTheDefinedStream(t *testing.T) {
	const rows, perSample = 13, 5
	d := compute.Dropout{P: 0.4, Seed: 0x9ae16a3b_2f90404f, Step: 0xc3a5c85c, FirstSample: math.MaxUint32, Layer: 0x5bd1e9,
		Site: compute.SiteMLPProjection, RowsPer: perSample}
	for _, isa := range ISAs() {
		b := open(t, isa, 2)
		for _, c := range []int{1, 3, 4, 5, 15, 16, 17, 33, 64, 127, 255, 257, 770} {
			dx := b.Alloc(rows * c)
			b.DropoutGrad(dx, ones(b, rows*c), rows, c, d)
			for i, got := range dx.Host() {
				want := float32(0)
				if row := i / c; d.Keep(row/perSample, row%perSample*c+i%c) {
					want = d.Scale()
				}
				if got != want {
					t.Fatalf("%s, %d channels: element %d is %v, want %v", isa, c, i, got, want)
				}
			}
		}
	}
}

// TestWordsOfManyStreams holds random streams, lengths and shapes against Philox itself.
func TestWordsOfManyStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	backends := make([]compute.Backend, len(ISAs()))
	for i, isa := range ISAs() {
		backends[i] = open(t, isa, 1)
	}
	for range 300 {
		d := compute.Dropout{P: 0.05 + 0.9*r.Float32(), Seed: r.Uint64(), Step: r.Uint32(), FirstSample: r.Uint32(),
			Layer: r.Uint32(), Site: compute.Site(r.UintN(4)), RowsPer: 1 + r.IntN(9)}
		rows, c := 1+r.IntN(20), 1+r.IntN(600)
		dx := goMemory(rows * c)
		for i, b := range backends {
			one := goMemory(rows * c)
			for j := range one.Host() {
				one.Host()[j] = 1
			}
			b.DropoutGrad(dx, one, rows, c, d)
			for j, got := range dx.Host() {
				sample, element := j/c/d.RowsPer, j/c%d.RowsPer*c+j%c
				word := compute.Philox4x32([4]uint32{uint32(element / 4), d.FirstSample + uint32(sample), d.Layer<<8 | uint32(d.Site), d.Step},
					[2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)})[element%4]
				if kept := word >= d.Threshold(); kept != (got != 0) {
					t.Fatalf("%s: %d rows of %d, %+v: element %d has the word %#x, kept is %v", ISAs()[i], rows, c, d, j, word, got != 0)
				}
			}
		}
	}
}

// TestPublishedWordsDecide places the threshold on both sides of each word that
// the Random123 library publishes for counter and key 0.
func TestPublishedWordsDecide(t *testing.T) {
	for i, word := range []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
		below := float32(float64(word&^0x1ff) / (1 << 32)) // 23 bits: exact
		above := math.Nextafter32(float32(float64(word)/(1<<32))+1e-7, 1)
		for _, isa := range ISAs() {
			b := open(t, isa, 1)
			for p, kept := range map[float32]bool{below: true, above: false} {
				dx := b.Alloc(4)
				b.DropoutGrad(dx, ones(b, 4), 1, 4, compute.Dropout{P: p, RowsPer: 1})
				if got := dx.Host()[i] != 0; got != kept {
					t.Errorf("%s: word %#x at P %v: kept %v, want %v", isa, word, p, got, kept)
				}
			}
		}
	}
}

// TestAttentionDropsTheDefinedElements makes each query's output show which keys
// it kept: values are unit vectors, so channel k is key k's factor.
func TestAttentionDropsTheDefinedElements(t *testing.T) {
	const seqs, tokens, heads, d = 2, 101, 2, 101
	drop := compute.Dropout{P: 0.3, Seed: 77, Step: 3, FirstSample: 9, Layer: 2, Site: compute.SiteAttention}
	for _, isa := range ISAs() {
		t.Run(isa, func(t *testing.T) {
			b := open(t, isa, 2)
			const c = heads * d
			qkv, out, lse := b.Alloc(seqs*tokens*3*c), b.Alloc(seqs*tokens*c), b.Alloc(seqs*heads*tokens)
			for row := range seqs * tokens {
				for h := range heads {
					qkv.Host()[row*3*c+2*c+h*d+row%tokens] = 1
				}
			}
			b.Attention(out, lse, qkv, seqs, tokens, heads, d, drop)
			for i, got := range out.Host() {
				row, h, key := i/c, i%c/d, i%d
				sample, query := row/tokens, row%tokens
				want := 0.0
				if key <= query && drop.Keep(sample, (h*tokens+query)*tokens+key) {
					want = float64(drop.Scale()) / float64(query+1)
				}
				if math.Abs(float64(got)-want) > 1e-6 {
					t.Fatal(fmt.Sprintf("sample %d head %d query %d key %d: %v, want %v", sample, h, query, key, got, want))
				}
			}
		})
	}
}

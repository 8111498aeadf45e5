package compute

import (
	"math"
	"testing"
)

// TestPhiloxKnownAnswers holds the published vectors of the Random123 library.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox4x32(c.counter, c.key); got != c.want {
			t.Errorf("counter %x key %x: %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

// TestKeepComparesThePublishedWord places the third published vector in a
// Dropout: its words are 0xd16cfe09 0x94fdcceb 0x5001e420 0x24126ea1, so that
// P = 1/2 drops elements 2 and 3 of the group, and no field may be elsewhere.
func TestKeepComparesThePublishedWord(t *testing.T) {
	d := Dropout{P: 0.5, Seed: 0x299f31d0_a4093822, Step: 0x03707344, FirstSample: 0x85a308d3 - 7, Layer: 0x13198a, Site: 0x2e}
	const group = 0x243f6a88
	for i, want := range []bool{true, true, false, false} {
		if got := d.Keep(7, 4*group+i); got != want {
			t.Errorf("word %d: kept %v, want %v", i, got, want)
		}
	}
	const word = 0x24126ea1 // a word at the threshold is kept, one below it is not
	for _, p := range []float32{float32(word>>8) / (1 << 24), float32(word>>8+1) / (1 << 24)} {
		d.P = p
		if got, want := d.Keep(7, 4*group+3), word >= uint64(float64(p)*(1<<32)); got != want {
			t.Errorf("threshold %#x: kept %v, want %v", d.Threshold(), got, want)
		}
	}
}

// TestShareDropped: of many elements the share that is dropped is P, within
// five standard deviations, and kept ones are scaled so that the mean stays.
func TestShareDropped(t *testing.T) {
	const n = 1 << 16
	for _, p := range []float32{0, 0.1, 0.3, 0.9} {
		d, dropped := Dropout{P: p, Seed: 3}, 0
		for i := range n {
			if !d.Keep(i%64, i/64) {
				dropped++
			}
		}
		share, spread := float64(dropped)/n, math.Sqrt(float64(p)*(1-float64(p))/n)
		if math.Abs(share-float64(p)) > 5*spread {
			t.Errorf("P %v drops %v", p, share)
		}
		if got := float64(d.Scale()) * (1 - float64(p)); math.Abs(got-1) > 1e-6 {
			t.Errorf("P %v scales by %v", p, d.Scale())
		}
	}
}

package compute

import "math/bits"

// Constants of Philox4x32 (Salmon, Moraes, Dror and Shaw, SC'11).
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
)

// Philox4x32 is the 10-round generator: four random words for each counter and key.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(philoxM0, counter[0])
		hi1, lo1 := bits.Mul32(philoxM1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return counter
}

// Keep reports whether dropout d keeps an element of a sample; see Dropout.
func (d Dropout) Keep(sample, element int) bool {
	if d.P == 0 {
		return true
	}
	words := Philox4x32(
		[4]uint32{uint32(element / 4), d.FirstSample + uint32(sample), d.Layer<<8 | uint32(d.Site), d.Step},
		[2]uint32{uint32(d.Seed), uint32(d.Seed >> 32)})
	return words[element%4] >= d.Threshold()
}

// Scale is what kept elements are multiplied by.
func (d Dropout) Scale() float32 { return 1 / (1 - d.P) }

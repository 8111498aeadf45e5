package data

import "math/bits"

// golden is 2^64 divided by the golden ratio, SplitMix64's increment.
const golden = 0x9e3779b97f4a7c15

// mix64 is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a
// bijection of 64-bit words in which every input bit changes every output bit.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// derive folds words into one key; the order of the words matters.
func derive(words ...uint64) uint64 {
	key := uint64(0)
	for _, word := range words {
		key = mix64((key ^ word) + golden)
	}
	return key
}

// stream is the SplitMix64 generator. The zero stream is a valid one.
type stream struct{ state uint64 }

func (s *stream) next() uint64 {
	s.state += golden
	return mix64(s.state)
}

// below draws uniformly from [0, n), without bias (Lemire, TOMACS 2019).
func (s *stream) below(n uint64) uint64 {
	hi, lo := bits.Mul64(s.next(), n)
	if lo < n {
		for threshold := -n % n; lo < threshold; {
			hi, lo = bits.Mul64(s.next(), n)
		}
	}
	return hi
}

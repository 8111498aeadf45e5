package ref

import "unsafe"

// alignment of Alloc's memory in float32 values: 64 bytes.
const alignment = 16

// aligned is n zeroes that start on a 64-byte boundary.
func aligned(n int) []float32 {
	if n == 0 {
		return nil
	}
	p := make([]float32, n+alignment-1)
	off := 0
	for uintptr(unsafe.Pointer(&p[off]))%(4*alignment) != 0 {
		off++
	}
	return p[off : off+n : off+n]
}

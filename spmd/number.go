package spmd

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// Number is what collectives move and reduce. Integers wrap around on overflow.
type Number interface {
	~float32 | ~float64 | ~int32 | ~int64 | BFloat16
}

// BFloat16 is the upper half of a float32: 8 bits of exponent, 7 of fraction.
type BFloat16 uint16

// Float32 returns b's value, exactly.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// FromFloat32 rounds f to the nearest BFloat16, ties to even. A NaN stays one.
func FromFloat32(f float32) BFloat16 {
	bits := math.Float32bits(f)
	if f != f {
		return BFloat16(bits>>16 | 0x40)
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Op is a reduction. Average is Sum divided by the World's size (towards zero
// for integers). A BFloat16 sum is rounded after each addition.
type Op int

// The reductions.
const (
	Sum Op = iota
	Min
	Max
	Product
	Average
)

var opNames = [...]string{"sum", "min", "max", "product", "average"}

func (op Op) valid() bool { return op >= 0 && int(op) < len(opNames) }

// String returns the reduction's name in lower case.
func (op Op) String() string {
	if !op.valid() {
		return fmt.Sprintf("reduction %d", int(op))
	}
	return opNames[op]
}

// dtype is a Number's type as it stands in a message's header.
type dtype uint8

const (
	noType dtype = iota
	float32Type
	float64Type
	int32Type
	int64Type
	bfloat16Type
	byteType
)

var dtypes = [...]struct {
	name string
	size int
}{{"nothing", 0}, {"float32", 4}, {"float64", 8}, {"int32", 4}, {"int64", 8}, {"bfloat16", 2}, {"byte", 1}}

func (d dtype) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("type %d", uint8(d))
	}
	return dtypes[d].name
}

func (d dtype) size() int { return dtypes[d].size }

func dtypeOf[T Number]() dtype {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Float32:
		return float32Type
	case reflect.Float64:
		return float64Type
	case reflect.Int32:
		return int32Type
	case reflect.Int64:
		return int64Type
	default:
		return bfloat16Type
	}
}

// bytesOf returns x's memory.
func bytesOf[T any](x []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(t)))
}

// numbers is the inverse of bytesOf; b must be aligned for T.
func numbers[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

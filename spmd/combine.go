package spmd

type arithmetic interface {
	float32 | float64 | int32 | int64
}

// combine computes dst = a op b, element by element; dst may be a or b. Average
// only adds: see divide. The operands' order matters for the bits of NaNs, so
// callers put the lower rank's value first.
func combine(d dtype, op Op, dst, a, b []byte) {
	switch d {
	case float32Type:
		combineNumbers[float32](op, numbers[float32](dst), numbers[float32](a), numbers[float32](b))
	case float64Type:
		combineNumbers[float64](op, numbers[float64](dst), numbers[float64](a), numbers[float64](b))
	case int32Type:
		combineNumbers[int32](op, numbers[int32](dst), numbers[int32](a), numbers[int32](b))
	case int64Type:
		combineNumbers[int64](op, numbers[int64](dst), numbers[int64](a), numbers[int64](b))
	case bfloat16Type:
		combineBFloat16(op, numbers[BFloat16](dst), numbers[BFloat16](a), numbers[BFloat16](b))
	}
}

func combineNumbers[T arithmetic](op Op, dst, a, b []T) {
	switch op {
	case Min:
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = min(a[i], b[i])
		}
	case Max:
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = max(a[i], b[i])
		}
	case Product:
		a, b = a[:len(dst)], b[:len(dst)]
		for i := range dst {
			dst[i] = a[i] * b[i]
		}
	default:
		add(dst, a, b)
	}
}

// add computes dst = a + b. Arrays of eight cost one bounds check a turn.
func add[T arithmetic](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for len(dst) >= 8 && len(a) >= 8 && len(b) >= 8 {
		d, x, y := (*[8]T)(dst), (*[8]T)(a), (*[8]T)(b)
		d[0], d[1], d[2], d[3] = x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		d[4], d[5], d[6], d[7] = x[4]+y[4], x[5]+y[5], x[6]+y[6], x[7]+y[7]
		dst, a, b = dst[8:], a[8:], b[8:]
	}
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func combineBFloat16(op Op, dst, a, b []BFloat16) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		x, y := a[i].Float32(), b[i].Float32()
		switch op {
		case Min:
			x = min(x, y)
		case Max:
			x = max(x, y)
		case Product:
			x *= y
		default:
			x += y
		}
		dst[i] = FromFloat32(x)
	}
}

// divide turns the sum of n values into their average.
func divide(d dtype, x []byte, n int) {
	switch d {
	case float32Type:
		divideNumbers(numbers[float32](x), float32(n))
	case float64Type:
		divideNumbers(numbers[float64](x), float64(n))
	case int32Type:
		divideNumbers(numbers[int32](x), int32(n))
	case int64Type:
		divideNumbers(numbers[int64](x), int64(n))
	case bfloat16Type:
		b := numbers[BFloat16](x)
		for i := range b {
			b[i] = FromFloat32(b[i].Float32() / float32(n))
		}
	}
}

func divideNumbers[T arithmetic](x []T, n T) {
	for i := range x {
		x[i] /= n
	}
}

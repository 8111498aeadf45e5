package spmd

// number converts a small integer, exactly.
func number[T Number](v int) T {
	if dtypeOf[T]() == bfloat16Type {
		return T(FromFloat32(float32(v)))
	}
	return T(v)
}

// filled returns n elements from a function of their place.
func filled[T Number](n int, value func(i int) int) []T {
	x := make([]T, n)
	fill(x, value)
	return x
}

func fill[T Number](x []T, value func(i int) int) {
	for i := range x {
		x[i] = number[T](value(i))
	}
}

// differences counts the elements of x that are not value's.
func differences[T Number](x []T, value func(i int) int) int {
	wrong := 0
	for i := range x {
		if x[i] != number[T](value(i)) {
			wrong++
		}
	}
	return wrong
}

// addend returns what rank r contributes to element i of a reduction, and
// outcome what must come of it. Sums stay below 2 for each rank, which is exact
// in BFloat16 up to 128 ranks.
func addend(op Op, size, r, i int) int {
	switch op {
	case Product:
		if i%(size+1) == r {
			return 2
		}
		return 1
	case Average:
		return i%7 + 2*r - (size - 1)
	}
	return (i + r) % 3
}

func outcome(op Op, size, i int) int {
	v := addend(op, size, 0, i)
	for r := 1; r < size; r++ {
		a := addend(op, size, r, i)
		switch op {
		case Min:
			v = min(v, a)
		case Max:
			v = max(v, a)
		case Product:
			v *= a
		default:
			v += a
		}
	}
	if op == Average {
		v /= size
	}
	return v
}

// origin is element i of what rank r has for rank to.
func origin(r, to, i int) int { return (31*r + 7*to + i) % 101 }

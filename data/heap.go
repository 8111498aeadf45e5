package data

// before orders the items of a heap.
type before[T any] interface{ before(T) bool }

// heapOf gives back its items in their order; among items of which neither is
// before the other, any comes first.
type heapOf[T before[T]] []T

func (h *heapOf[T]) push(item T) {
	*h = append(*h, item)
	items := *h
	for i := len(items) - 1; i > 0; {
		parent := (i - 1) / 2
		if !items[i].before(items[parent]) {
			return
		}
		items[i], items[parent] = items[parent], items[i]
		i = parent
	}
}

// pop takes out the first item; the heap must not be empty.
func (h *heapOf[T]) pop() T {
	items := *h
	first, last := items[0], len(items)-1
	items[0] = items[last]
	var none T
	items[last] = none // what it points to can go
	*h = items[:last]
	(*h).sink()
	return first
}

// sink restores the order after the first item was exchanged.
func (h heapOf[T]) sink() {
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

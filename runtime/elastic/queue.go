package elastic

import "sync"

// queue passes values between goroutines without ever blocking the giver.
type queue[T any] struct {
	ready chan struct{} // holds a token when there may be values

	mu    sync.Mutex
	items []T
}

func newQueue[T any]() *queue[T] { return &queue[T]{ready: make(chan struct{}, 1)} }

func (q *queue[T]) put(v T) {
	q.mu.Lock()
	q.items = append(q.items, v)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns all values in order. Wait on ready first.
func (q *queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items
}

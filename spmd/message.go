package spmd

import "context"

// Send sends x to a rank, under a tag. It returns once x may be changed, which
// can be before the peer receives it. Messages need no order with collectives.
func Send[T Number](ctx context.Context, w *World, x []T, to, tag int) error {
	return w.mail.await(ctx, post(w, x, to, tag, true))
}

// SendAsync is Send in the background; x is in use until it is done.
func SendAsync[T Number](w *World, x []T, to, tag int) *Work {
	return w.mail.background(post(w, x, to, tag, true))
}

// Recv fills x with the next message of that tag from a rank. The message must
// have x's type and length; otherwise it is dropped with a MismatchError.
func Recv[T Number](ctx context.Context, w *World, x []T, from, tag int) error {
	return w.mail.await(ctx, post(w, x, from, tag, false))
}

// RecvAsync is Recv in the background; x is in use until it is done.
func RecvAsync[T Number](w *World, x []T, from, tag int) *Work {
	return w.mail.background(post(w, x, from, tag, false))
}

func post[T Number](w *World, x []T, peer, tag int, sending bool) *request {
	h := header{dtype: dtypeOf[T](), root: int32(tag), count: int64(len(x))}
	return w.mail.post(h, peer, bytesOf(x), sending)
}

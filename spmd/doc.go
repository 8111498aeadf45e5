// Package spmd lets the processes of a parallel program ("ranks") act as one:
// every rank runs the same program on its own data and meets the others in
// collectives such as AllReduce.
//
//	func main() {
//		spmd.Main(launch.Connect, func(ctx context.Context, w *spmd.World) error {
//			x := []float64{float64(w.Rank())}
//			return spmd.AllReduce(ctx, w, x, spmd.Sum)
//		})
//	}
//
// # How it is built
//
// A World is a mesh of one-way byte rings (ring.go), two between any two ranks
// for collectives and two for messages. Rings lie in memory shared by the
// processes of a host (segment.go), in the heap between goroutines (memory.go),
// or in the heap with a TCP connection behind them (tcp.go, handshake.go). The
// code above sees rings only: operation.go moves bytes for collectives,
// mailbox.go for point to point. A rank with nothing to do spins briefly and
// then sleeps on its bell (bell.go), which its peers strike.
//
// Collectives are straight-line code over send and receive (allreduce.go,
// broadcast.go, ...). Their results are deterministic: the same bits on every
// rank, and from run to run for one size of World. GradientReducer goes
// further: its sums don't depend on the size (tree.go, reducer.go).
//
// # Failures
//
// Each message carries what its sender is doing, so that ranks which disagree
// get an error naming both sides. A rank that dies is noticed at once, through
// its pidfd on the same host and its connection elsewhere; a rank that hangs is
// named by a TimeoutError. After a collective has failed, the World is broken:
// the peers are told why, and every later operation returns that first error.
package spmd

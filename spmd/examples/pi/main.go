// Pi estimates π on all ranks at once, by the midpoint rule or by throwing
// darts, and rank 0 prints it. It runs alone or under any launcher:
//
//	pi -n 1000000
//	ddp launch --nproc-per-node 4 -- pi -method darts -n 10000000
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"

	"ddp/runtime/launch"
	"ddp/spmd"
)

func main() {
	method := flag.String("method", "midpoint", "midpoint or darts")
	n := flag.Int("n", 1_000_000, "intervals or darts in all")
	seed := flag.Uint64("seed", 1, "for the darts")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 || *method != "midpoint" && *method != "darts" {
		fmt.Fprintln(os.Stderr, "pi: usage: pi [-method midpoint|darts] [-n NUMBER > 0] [-seed NUMBER]")
		os.Exit(2)
	}
	spmd.Main(launch.Connect, func(ctx context.Context, w *spmd.World) error {
		part := midpoint
		if *method == "darts" {
			part = func(rank, size, n int) float64 { return darts(rank, size, n, *seed) }
		}
		sum := []float64{part(w.Rank(), w.Size(), *n)}
		if err := spmd.Reduce(ctx, w, sum, spmd.Sum, 0); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Printf("pi is about %.10f (off by %.1e), from %d ranks\n", sum[0], math.Abs(sum[0]-math.Pi), w.Size())
		}
		return nil
	})
}

// midpoint integrates 4/(1+x²) over this rank's share of n intervals of [0, 1].
func midpoint(rank, size, n int) float64 {
	h, sum := 1/float64(n), 0.0
	for i := rank; i < n; i += size {
		x := (float64(i) + 0.5) * h
		sum += 4 / (1 + x*x)
	}
	return sum * h
}

// darts throws this rank's share of n darts at the unit square.
func darts(rank, size, n int, seed uint64) float64 {
	r, hits := rand.New(rand.NewPCG(seed, uint64(rank))), 0
	for i := rank; i < n; i += size {
		if x, y := r.Float64(), r.Float64(); x*x+y*y < 1 {
			hits++
		}
	}
	return 4 * float64(hits) / float64(n)
}

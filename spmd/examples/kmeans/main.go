// Kmeans finds clusters in points that no rank holds alone (Lloyd 1982). Each
// rank makes its share of the points around k known centers; each iteration
// needs one all-reduce of sums and counts. Rank 0 prints the centers.
//
//	ddp launch --nproc-per-node 4 -- kmeans -k 3 -points 100000
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

type point [2]float64

func main() {
	k := flag.Int("k", 3, "clusters")
	n := flag.Int("points", 30_000, "points in all")
	flag.Parse()
	if flag.NArg() > 0 || *k < 1 || *n < *k {
		fmt.Fprintln(os.Stderr, "kmeans: usage: kmeans [-k CLUSTERS] [-points NUMBER >= k]")
		os.Exit(2)
	}
	spmd.Main(launch.Connect, func(ctx context.Context, w *spmd.World) error {
		points := share(w.Rank(), w.Size(), *n, *k)
		centers, rounds, err := cluster(ctx, w, points, guess(*k))
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			for _, c := range centers {
				fmt.Printf("center %7.3f %7.3f\n", c[0], c[1])
			}
			fmt.Printf("%d points on %d ranks settled in %d rounds\n", *n, w.Size(), rounds)
		}
		return nil
	})
}

// site is where cluster i truly lies: on a circle of radius 10.
func site(i, k int) point {
	angle := 2 * math.Pi * float64(i) / float64(k)
	return point{10 * math.Cos(angle), 10 * math.Sin(angle)}
}

// guess starts each center between its site and the middle.
func guess(k int) []point {
	centers := make([]point, k)
	for i := range centers {
		s := site(i, k)
		centers[i] = point{s[0] / 2, s[1] / 2}
	}
	return centers
}

// share makes the points whose number is rank modulo size; a point depends on
// its number alone.
func share(rank, size, n, k int) []point {
	var points []point
	for i := rank; i < n; i += size {
		r, s := rand.New(rand.NewPCG(7, uint64(i))), site(i%k, k)
		points = append(points, point{s[0] + r.NormFloat64(), s[1] + r.NormFloat64()})
	}
	return points
}

// cluster moves the centers until none moves by more than a thousandth.
func cluster(ctx context.Context, w *spmd.World, points, centers []point) (_ []point, rounds int, err error) {
	for moved := math.Inf(1); moved > 1e-3; rounds++ {
		sums := make([]float64, 3*len(centers)) // x, y and count of each
		for _, p := range points {
			c := nearest(p, centers)
			sums[3*c] += p[0]
			sums[3*c+1] += p[1]
			sums[3*c+2]++
		}
		if err := spmd.AllReduce(ctx, w, sums, spmd.Sum); err != nil {
			return nil, rounds, err
		}
		moved = 0
		for c := range centers {
			if count := sums[3*c+2]; count > 0 {
				next := point{sums[3*c] / count, sums[3*c+1] / count}
				moved = max(moved, math.Sqrt(square(next, centers[c])))
				centers[c] = next
			}
		}
	}
	return centers, rounds, nil
}

func nearest(p point, centers []point) int {
	best := 0
	for c := range centers {
		if square(p, centers[c]) < square(p, centers[best]) {
			best = c
		}
	}
	return best
}

func square(a, b point) float64 {
	dx, dy := a[0]-b[0], a[1]-b[1]
	return dx*dx + dy*dy
}

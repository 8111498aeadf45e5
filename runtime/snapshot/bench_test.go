package snapshot

import (
	"context"
	"sync"
	"testing"
	"time"
)

// BenchmarkWrite writes 300 MB of state, as 1 and as 2 ranks of one process, and
// reports the longest stall of a rank, first and last, the time until the last is
// durable, and the time that a reader needs to verify it.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{1, 2} {
		b.Run(map[int]string{1: "1 rank", 2: "2 ranks"}[size], func(b *testing.B) { benchmarkWrite(b, size) })
	}
}

func benchmarkWrite(b *testing.B, size int) {
	const values = 25e6 // a tensor; three of them
	c := Content{Tensors: map[string][]Tensor{}}
	for _, name := range []string{"model.safetensors", "m.safetensors", "v.safetensors"} {
		x := make([]float32, values)
		for i := range x {
			x[i] = float32(i)
		}
		c.Tensors[name] = []Tensor{{"x", []int{values}, x}}
	}
	dir := b.TempDir()
	var rs ranks
	for _, g := range newGroups(size) {
		w, err := NewWriter(dir, Keep{Newest: 1}, g)
		if err != nil {
			b.Fatal(err)
		}
		rs = append(rs, w)
	}
	var stall, write time.Duration
	for b.Loop() {
		c.Meta.Step++
		s, w := timed(b, rs, c)
		if c.Meta.Step == 1 {
			b.ReportMetric(float64(s.Milliseconds()), "first-stall-ms")
		}
		stall, write = s, w
	}
	b.ReportMetric(float64(stall.Microseconds())/1e3, "stall-ms")
	b.ReportMetric(float64(write.Milliseconds()), "write-ms")
	began := time.Now()
	if _, bad, err := Newest(dir); err != nil || len(bad) > 0 {
		b.Fatal(bad, err)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "verify-ms")
}

func timed(b *testing.B, rs ranks, c Content) (stall, write time.Duration) {
	written := make([]*Written, len(rs))
	var wg sync.WaitGroup
	for rank, w := range rs {
		wg.Go(func() {
			if _, err := w.Begin(context.Background(), c); err != nil {
				b.Error(err)
			}
			written[rank], _ = w.Wait(context.Background())
		})
	}
	wg.Wait()
	for _, w := range written {
		stall, write = max(stall, w.Stall), max(write, w.Write)
	}
	return stall, write
}

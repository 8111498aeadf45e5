package data

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nextBatch(t *testing.T, l *Loader) *Batch {
	t.Helper()
	b, err := l.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Ranks that share a step read what one rank alone would, wherever they start.
func TestLoaderMatchesDirectReading(t *testing.T) {
	set := counted(t, 400, Config{Split: 0.9, BlockSize: 8, Seed: 5})
	sampler := NewSampler(set.TrainLen(), 5)
	const batch, from = 12, 2
	left := NewLoader(set, sampler, batch, 0, 9, from)
	right := NewLoader(set, sampler, batch, 9, 3, from)
	defer left.Close()
	defer right.Close()
	for step := from; step < from+10; step++ {
		a, b := nextBatch(t, left), nextBatch(t, right)
		if a.Step != step || b.Step != step {
			t.Fatalf("steps %d and %d, want %d", a.Step, b.Step, step)
		}
		if epoch := step * batch / set.TrainLen(); a.Epoch != epoch {
			t.Errorf("step %d is of epoch %d, not %d", step, epoch, a.Epoch)
		}
		gotX, gotY := slices.Concat(a.X, b.X), slices.Concat(a.Y, b.Y)
		x, y := make([]int32, 8), make([]int32, 8)
		for s := range batch {
			epoch, index := sampler.Index(int64(step*batch + s))
			set.Train(index, epoch, x, y)
			if !slices.Equal(x, gotX[s*8:s*8+8]) || !slices.Equal(y, gotY[s*8:s*8+8]) {
				t.Fatalf("step %d slot %d is %v, want %v", step, s, gotX[s*8:s*8+8], x)
			}
		}
	}
}

func TestLoaderEnds(t *testing.T) {
	set := counted(t, 400, Config{Split: 0.9, BlockSize: 8})
	l := NewLoader(set, NewSampler(set.TrainLen(), 5), 4, 0, 4, 0)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Next(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context gives %v", err)
	}
	if b := nextBatch(t, l); b.Step != 0 {
		t.Errorf("a cancelled Next lost step 0: the next is %d", b.Step)
	}
	l.Close()
	l.Close()
	if _, err := l.Next(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed loader gives %v", err)
	}
}

// blocked is a Dataset whose windows wait for the gate.
type blocked struct {
	*text
	gate chan struct{}
}

func (b blocked) Train(i, epoch int, x, y []int32) {
	<-b.gate
	b.text.Train(i, epoch, x, y)
}

func TestWaitingNextEndsWithContextAndClose(t *testing.T) {
	set := blocked{counted(t, 400, Config{Split: 0.9, BlockSize: 8}), make(chan struct{})}
	l := NewLoader(set, NewSampler(set.TrainLen(), 5), 4, 0, 4, 0)
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := l.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled while waiting: %v", err)
		}
	})
	cancel()
	waiting.Wait()
	waiting.Go(func() {
		if _, err := l.Next(context.Background()); !errors.Is(err, ErrClosed) {
			t.Errorf("closed while waiting: %v", err)
		}
	})
	closed := make(chan struct{})
	go func() { l.Close(); close(closed) }()
	waiting.Wait()
	close(set.gate)
	<-closed
}

func TestDatasetsAreSafeForConcurrentUse(t *testing.T) {
	for _, set := range []Dataset{
		counted(t, 400, Config{Split: 0.9, BlockSize: 8}),
		mustOpen(t, Config{Source: "adder", Digits: 2}),
		mustOpen(t, Config{Source: "sort", Length: 6, Symbols: 3}),
	} {
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				x, y := make([]int32, set.BlockSize()), make([]int32, set.BlockSize())
				for i := range min(set.TrainLen(), 100) {
					set.Train(i, i%3, x, y)
					set.Val(i%set.ValLen(), x, y)
				}
			})
		}
		readers.Wait()
	}
}

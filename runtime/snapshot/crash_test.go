package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Variables that make the test binary a writer which kills itself.
const (
	dirVariable   = "SNAPSHOT_TEST_DIR"
	killVariable  = "SNAPSHOT_TEST_KILL"  // number of the disk operation to die at
	ranksVariable = "SNAPSHOT_TEST_RANKS" // goroutines that write together
	stepsVariable = "SNAPSHOT_TEST_STEPS" // steps to write, comma-separated
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		os.Exit(dyingWriter(dir))
	}
	goleak.VerifyTestMain(m)
}

// dyingWriter writes snapshots and kills its process at the given operation.
func dyingWriter(dir string) int {
	killAt, _ := strconv.Atoi(os.Getenv(killVariable))
	ranks, _ := strconv.Atoi(os.Getenv(ranksVariable))
	var mu sync.Mutex
	n := 0
	d := disk{before: func(string, string) error {
		mu.Lock()
		defer mu.Unlock()
		if n++; n == killAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}
	var steps []int
	for _, s := range strings.Split(os.Getenv(stepsVariable), ",") {
		step, _ := strconv.Atoi(s)
		steps = append(steps, step)
	}
	if err := writeAll(dir, ranks, d, Keep{Newest: 1}, steps...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// writeAll writes the snapshots of steps one after the other, with all ranks.
func writeAll(dir string, ranks int, d disk, keep Keep, steps ...int) error {
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for rank, g := range newGroups(ranks) {
		wg.Go(func() {
			w, err := newWriter(dir, keep, g, d)
			for i := 0; i < len(steps) && err == nil; i++ {
				if _, err = w.Begin(context.Background(), content(steps[i])); err == nil {
					_, err = w.Wait(context.Background())
				}
			}
			errs[rank] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// groups are ranks in one process.
type groups struct {
	rank, size int
	up, down   []chan []byte // one for each rank
}

func newGroups(size int) []Group {
	up, down := make([]chan []byte, size), make([]chan []byte, size)
	var out []Group
	for rank := range size {
		up[rank], down[rank] = make(chan []byte, 1), make(chan []byte, 1)
		out = append(out, groups{rank, size, up, down})
	}
	return out
}

func (g groups) Rank() int { return g.rank }
func (g groups) Size() int { return g.size }

func (g groups) Gather(_ context.Context, b []byte) ([][]byte, error) {
	g.up[g.rank] <- b
	if g.rank != 0 {
		return nil, nil
	}
	var all [][]byte
	for _, c := range g.up {
		all = append(all, <-c)
	}
	return all, nil
}

func (g groups) Broadcast(_ context.Context, b []byte) ([]byte, error) {
	if g.rank == 0 {
		for _, c := range g.down {
			c <- b
		}
	}
	return <-g.down[g.rank], nil
}

// content is a snapshot that its step determines: several chunks, odd sizes, an
// empty tensor, a scalar.
func content(step int) Content {
	values := func(n, salt int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(uint32(i*salt+step) * 2654435761 >> 8)
		}
		return x
	}
	loss := 1 / float64(step+1)
	return Content{
		Meta: Meta{Step: step, Epoch: step / 2, Seed: 7, JobHash: "j", ModelHash: "m", ISA: "avx2", World: 1, ValLoss: &loss,
			Time: time.Date(2026, 1, 2, 3, 4, step, 0, time.UTC), Extra: []byte(`{"a":1}`)},
		Tensors: map[string][]Tensor{
			"model.safetensors":     {{"wte", []int{1100, 1201}, values(1100*1201, 3)}, {"b", []int{}, values(1, 5)}, {"a.none", []int{0, 4}, nil}},
			"optimizer.safetensors": {{"m.wte", []int{7, 11}, values(77, 13)}},
		},
		Blobs: map[string][]byte{"config.json": []byte("{}\n"), "empty": {}},
	}
}

// holds fails unless s has exactly what content(s.Step) describes.
func holds(t *testing.T, s *Snapshot) {
	t.Helper()
	want := content(s.Step)
	if !reflect.DeepEqual(s.Meta, want.Meta) {
		t.Errorf("meta %+v, want %+v", s.Meta, want.Meta)
	}
	for name, tensors := range want.Tensors {
		var got []Tensor
		for _, x := range tensors {
			got = append(got, Tensor{x.Name, x.Shape, make([]float32, len(x.Data))})
		}
		if err := s.Load(name, got); err != nil {
			t.Fatal(err)
		}
		if ParamsSHA256(got) != ParamsSHA256(tensors) {
			t.Errorf("%s of step %d holds other values", name, s.Step)
		}
	}
	for name, want := range want.Blobs {
		if got, err := s.Blob(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestKilledAnywhere kills the writer at each of its disk operations: the
// newest good snapshot is there, whole, and the next writer carries on.
func TestKilledAnywhere(t *testing.T) {
	for _, c := range []struct{ ranks, before, again int }{{1, 1, 2}, {2, 1, 2}, {1, 2, 2}} {
		t.Run(fmt.Sprintf("%d ranks, step %d after %d", c.ranks, c.again, c.before), func(t *testing.T) {
			for killAt := 1; ; killAt++ {
				if killAt > 200 {
					t.Fatal("the writer never ends")
				}
				if !killedAt(t, killAt, c.ranks, c.before, c.again) {
					if killAt < 15 {
						t.Errorf("only %d operations: the hook is not everywhere", killAt)
					}
					return
				}
			}
		})
	}
}

// killedAt is false when the writer ended before that operation.
func killedAt(t *testing.T, killAt, ranks, before, again int) bool {
	dir := t.TempDir()
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, before); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, fmt.Sprintf("%s=%d", killVariable, killAt),
		fmt.Sprintf("%s=%d", ranksVariable, ranks), fmt.Sprintf("%s=%d", stepsVariable, again))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled()
	if err != nil && !killed {
		t.Fatalf("writer: %v\n%s", err, out)
	}
	s, bad, err := Newest(dir)
	if err != nil || s == nil || len(bad) > 0 {
		t.Fatalf("killed at operation %d: newest %v, bad %v, %v", killAt, s, bad, err)
	}
	holds(t, s)
	if !killed && s.Step != again {
		t.Errorf("the newest is step %d, want %d", s.Step, again)
	}
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, again+1); err != nil {
		t.Fatalf("the next writer: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, temporary+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	return killed
}

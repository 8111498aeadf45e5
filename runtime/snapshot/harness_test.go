package snapshot

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

// smallChunk makes many chunks of little content, with odd ends.
const smallChunk = 1000

// ranks are the writers of one world inside this process.
type ranks []*Writer

// open makes one writer for each rank.
func open(size int, dir string, keep Keep, d disk) (ranks, error) {
	rs := make(ranks, size)
	errs := make([]error, size)
	for rank, g := range newGroups(size) {
		if rs[rank], errs[rank] = newWriter(dir, keep, g, d); errs[rank] == nil {
			rs[rank].chunk = smallChunk
		}
	}
	return rs, errors.Join(errs...)
}

// write writes one snapshot with all ranks and returns what each one's Wait does.
func (rs ranks) write(c Content) (written []*Written, errs []error) {
	written, errs = make([]*Written, len(rs)), make([]error, len(rs))
	var wg sync.WaitGroup
	for rank, w := range rs {
		wg.Go(func() {
			_, began := w.Begin(context.Background(), c)
			done, err := w.Wait(context.Background())
			written[rank], errs[rank] = done, errors.Join(began, err)
		})
	}
	wg.Wait()
	return written, errs
}

// writeAll writes the contents one after the other, with all ranks.
func writeAll(dir string, size int, d disk, keep Keep, all ...Content) error {
	rs, err := open(size, dir, keep, d)
	if err != nil {
		return err
	}
	for _, c := range all {
		if _, errs := rs.write(c); errors.Join(errs...) != nil {
			return errors.Join(errs...)
		}
	}
	return nil
}

// mustWrite writes and fails the test otherwise.
func mustWrite(t *testing.T, dir string, size int, all ...Content) {
	t.Helper()
	if err := writeAll(dir, size, disk{}, Keep{Newest: 9}, all...); err != nil {
		t.Fatal(err)
	}
}

// group lets ranks talk that are goroutines of one process.
type group struct {
	rank, size int
	up, down   []chan []byte // one for each rank
}

func newGroups(size int) []Group {
	up, down := make([]chan []byte, size), make([]chan []byte, size)
	var out []Group
	for rank := range size {
		up[rank], down[rank] = make(chan []byte, 1), make(chan []byte, 1)
		out = append(out, group{rank, size, up, down})
	}
	return out
}

func (g group) Rank() int { return g.rank }
func (g group) Size() int { return g.size }

func (g group) Gather(_ context.Context, b []byte) ([][]byte, error) {
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

func (g group) Broadcast(_ context.Context, b []byte) ([]byte, error) {
	if g.rank == 0 {
		for _, c := range g.down {
			c <- b
		}
	}
	return <-g.down[g.rank], nil
}

// content is a snapshot that its step and version determine to the last byte:
// several small chunks, some of which begin in one tensor and end in another, odd
// sizes, an empty tensor, a scalar, an empty file, a file without tensors.
func content(step, version int) Content {
	values := func(n, salt int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(uint32(i*salt+step+1000*version) * 2654435761 >> 8)
		}
		return x
	}
	loss := 1 / float64(step+1)
	return Content{
		Meta: Meta{Step: step, Epoch: step / 2, Seed: uint64(version), JobHash: "j", ModelHash: "m", ISA: "avx2", World: 1, ValLoss: &loss,
			Time: time.Date(2026, 1, 2, 3, 4, step, 0, time.UTC), Extra: []byte(`{"a":1}`)},
		Tensors: map[string][]Tensor{
			"model.safetensors":     {{"wte", []int{11, 81}, values(11*81, 3)}, {"b", []int{}, values(1, 5)}, {"a.none", []int{0, 4}, nil}},
			"none.safetensors":      {},
			"optimizer.safetensors": {{"m.wte", []int{7, 11}, values(77, 13)}, {"m.a", []int{401}, values(401, 17)}, {"m.b", []int{3, 3}, values(9, 19)}, {"m.c", []int{607}, values(607, 23)}},
		},
		Blobs: map[string][]byte{"config.json": []byte("{}\n"), "empty": {}},
	}
}

// holds fails unless s is exactly want.
func holds(t *testing.T, s *Snapshot, want Content) {
	t.Helper()
	if s == nil {
		t.Fatal("no snapshot")
	}
	if !reflect.DeepEqual(s.Meta, want.Meta) {
		t.Errorf("meta %+v, want %+v", s.Meta, want.Meta)
	}
	var names []string
	for name, tensors := range want.Tensors {
		names = append(names, name)
		var got []Tensor
		for _, x := range tensors {
			got = append(got, Tensor{x.Name, x.Shape, make([]float32, len(x.Data))})
		}
		if err := s.Load(name, got); err != nil {
			t.Fatal(err)
		}
		for i, x := range tensors {
			if !slices.Equal(got[i].Data, x.Data) {
				t.Errorf("step %d: %s of %s has other values", s.Step, x.Name, name)
			}
		}
	}
	for name, want := range want.Blobs {
		names = append(names, name)
		if got, err := s.Blob(name); err != nil || string(got) != string(want) {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	slices.Sort(names)
	if !slices.Equal(s.Files(), names) {
		t.Errorf("files %v, want %v", s.Files(), names)
	}
}

// newestHolds fails unless dir's newest snapshot is want and none is damaged.
func newestHolds(t *testing.T, dir string, want Content) {
	t.Helper()
	s, bad, err := Newest(dir)
	if err != nil || len(bad) > 0 {
		t.Fatalf("newest: %v, bad %v", err, bad)
	}
	holds(t, s, want)
}

// has fails unless the snapshots in dir are of these steps, and nothing else is there.
func has(t *testing.T, dir string, steps ...int) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, step := range steps {
		want = append(want, filepath.Join(dir, folderName(step)))
	}
	slices.Sort(want)
	if got := append(all, hidden...); !slices.Equal(got, want) {
		t.Errorf("the folder has %v, want %v", got, want)
	}
}

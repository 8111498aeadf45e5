package snapshot

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// gate is a disk whose first operation waits until it is opened.
func gate() (d disk, open func()) {
	c := make(chan struct{})
	return disk{before: func(string, string) error { <-c; return nil }}, func() { close(c) }
}

// TestBeginCopies changes tensors and blobs as soon as Begin has returned, while
// the disk has not taken a byte yet.
func TestBeginCopies(t *testing.T) {
	for size := 1; size <= 2; size++ {
		dir := t.TempDir()
		d, release := gate()
		rs, err := open(size, dir, Keep{Newest: 2}, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range rs {
			c := content(1, 0)
			if _, err := w.Begin(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			for _, tensors := range c.Tensors {
				for _, x := range tensors {
					clear(x.Data)
				}
			}
			clear(c.Blobs["config.json"])
		}
		release()
		for _, w := range rs {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		newestHolds(t, dir, content(1, 0))
	}
}

// TestBeginWaits holds that the second snapshot starts after the first has ended,
// and reports what became of it.
func TestBeginWaits(t *testing.T) {
	dir := t.TempDir()
	d, release := gate()
	rs, err := open(1, dir, Keep{Newest: 2}, d)
	if err != nil {
		t.Fatal(err)
	}
	w := rs[0]
	done := make(chan int, 2)
	w.OnWritten(func(x Written) { done <- x.Step })
	if _, err := w.Begin(context.Background(), content(1, 0)); err != nil {
		t.Fatal(err)
	}
	began := make(chan error)
	go func() {
		_, err := w.Begin(context.Background(), content(2, 0))
		began <- err
	}()
	select {
	case err := <-began:
		t.Fatalf("the second began while the first was in flight: %v", err)
	case step := <-done:
		t.Fatalf("step %d was written through a closed gate", step)
	default:
	}
	release()
	if err := <-began; err != nil {
		t.Fatal(err)
	}
	select { // the first was told of before Begin returned
	case step := <-done:
		if step != 1 {
			t.Errorf("step %d was written first", step)
		}
	default:
		t.Error("the second began before the first was written")
	}
	if written, err := w.Wait(context.Background()); err != nil || written.Step != 2 || written.Path != filepath.Join(dir, folderName(2)) || <-done != 2 {
		t.Errorf("written %+v, %v", written, err)
	}
	if written, err := w.Wait(context.Background()); written != nil || err != nil {
		t.Errorf("nothing in flight: %+v, %v", written, err)
	}
	newestHolds(t, dir, content(2, 0))
	has(t, dir, 1, 2)
}

// TestWrittenSize compares the size that is told with the files'.
func TestWrittenSize(t *testing.T) {
	dir := t.TempDir()
	rs, err := open(2, dir, Keep{Newest: 2}, disk{})
	if err != nil {
		t.Fatal(err)
	}
	written, errs := rs.write(content(1, 0))
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	var want int64
	for name, text := range folderOf(t, dir, 1) {
		if name != manifestName {
			want += int64(len(text))
		}
	}
	list, err := List(dir)
	if err != nil || len(list) != 1 || list[0].Bytes != want || written[0].Bytes != want || written[1].Bytes != want {
		t.Errorf("list %+v, written %+v and %+v, %v, want %d bytes", list, written[0], written[1], err, want)
	}
}

// TestBeginTellsAllErrors holds that a failed snapshot is not forgotten when the
// next one cannot begin.
func TestBeginTellsAllErrors(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for want, begin := range map[string]func(w *Writer) error{
		"cannot be of step -1": func(w *Writer) error {
			_, err := w.Begin(context.Background(), Content{Meta: Meta{Step: -1}})
			return err
		},
		"context canceled": func(w *Writer) error {
			_, err := w.Begin(ended, content(2, 0))
			return err
		},
	} {
		dir := t.TempDir()
		rs, err := open(1, dir, Keep{Newest: 1}, disk{before: func(string, string) error { return unix.EIO }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rs[0].Begin(context.Background(), content(1, 0)); err != nil {
			t.Fatal(err)
		}
		err = begin(rs[0])
		if !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want the first one's and %q", err, want)
		}
		if written, err := rs[0].Wait(context.Background()); written != nil || err != nil {
			t.Errorf("something is in flight: %v, %v", written, err)
		}
		if err := begin(rs[0]); err == nil || errors.Is(err, unix.EIO) {
			t.Errorf("error %v, want only %q", err, want)
		}
	}
}

// TestCancelled ends the context in the middle of the writing.
func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0))
	ctx, cancel := context.WithCancel(context.Background())
	rs, err := open(1, dir, Keep{Newest: 1}, disk{before: func(op, _ string) error {
		if op == "write" {
			cancel()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rs[0].Begin(ctx, content(2, 0)); err != nil {
		t.Fatal(err)
	}
	if written, err := rs[0].Wait(context.Background()); written != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("written %v, error %v", written, err)
	}
	newestHolds(t, dir, content(1, 0))
	has(t, dir, 1)
}

func loss(x float64) *float64 { return &x }

// TestKeep holds which snapshots survive: the newest, and the best of all.
func TestKeep(t *testing.T) {
	nan, inf := loss(math.NaN()), loss(math.Inf(-1))
	for _, c := range []struct {
		losses []*float64
		keep   Keep
		want   []int // newest first
		best   int   // 0: none
	}{
		{[]*float64{loss(5), loss(1), loss(3), loss(3), loss(2), loss(4)}, Keep{1, false}, []int{6}, 6},
		{[]*float64{loss(5), loss(1), loss(3), loss(3), loss(2), loss(4)}, Keep{2, false}, []int{6, 5}, 5},
		{[]*float64{loss(5), loss(1), loss(3), loss(3), loss(2), loss(4)}, Keep{1, true}, []int{6, 2}, 2},
		{[]*float64{loss(5), loss(1), loss(3), loss(3), loss(2), loss(4)}, Keep{5, true}, []int{6, 5, 4, 3, 2}, 2},
		{[]*float64{loss(5), loss(1), loss(3), loss(3), loss(2), loss(4)}, Keep{9, true}, []int{6, 5, 4, 3, 2, 1}, 2},
		{[]*float64{nil, nil, nil}, Keep{1, true}, []int{3}, 0},
		{[]*float64{loss(1), nil, nil}, Keep{1, true}, []int{3, 1}, 1},
		{[]*float64{loss(1), loss(1), loss(2)}, Keep{1, true}, []int{3, 2}, 2}, // of equals the newest
		{[]*float64{loss(1), nan, nan}, Keep{1, true}, []int{3, 1}, 1},
		{[]*float64{loss(1), inf, loss(2)}, Keep{1, true}, []int{3, 1}, 1},
		{[]*float64{nan, loss(3), nan}, Keep{1, true}, []int{3, 2}, 2},
		{[]*float64{nan}, Keep{1, true}, []int{1}, 0},
	} {
		dir := t.TempDir()
		var all []Content
		for i, l := range c.losses {
			all = append(all, Content{Meta: Meta{Step: i + 1, ValLoss: l}, Blobs: map[string][]byte{"x": {1}}})
		}
		if err := writeAll(dir, 1, disk{}, c.keep, all...); err != nil {
			t.Fatal(err)
		}
		list, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, info := range list {
			got = append(got, info.Step)
			if info.Best != (info.Step == c.best) {
				t.Errorf("%+v: step %d best %v", c.keep, info.Step, info.Best)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v keeps %v, want %v", c.keep, got, c.want)
		}
		has(t, dir, got...)
	}
}

// TestKeepNothing is refused on every rank: the newest would remove itself.
func TestKeepNothing(t *testing.T) {
	for _, g := range newGroups(2) {
		if _, err := NewWriter(t.TempDir(), Keep{Newest: 0, Best: true}, g); err == nil || !strings.Contains(err.Error(), "at least 1") {
			t.Errorf("error %v", err)
		}
	}
}

// TestNewerStay holds that snapshots newer than the one written are not pruned.
func TestNewerStay(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0), content(2, 0), content(9, 0))
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 1}, content(3, 0)); err != nil {
		t.Fatal(err)
	}
	has(t, dir, 3, 9)
}

// TestArchive moves everything aside, damaged ones too, and deletes nothing.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	if aside, err := Archive(filepath.Join(dir, "none")); aside != "" || err != nil {
		t.Errorf("no folder: %q, %v", aside, err)
	}
	if aside, err := Archive(dir); aside != "" || err != nil {
		t.Errorf("nothing to move: %q, %v", aside, err)
	}
	mustWrite(t, dir, 1, content(1, 0), content(2, 0), content(3, 0))
	if err := unix.Unlink(filepath.Join(dir, folderName(3), manifestName)); err != nil {
		t.Fatal(err)
	}
	before := map[int]map[string]string{}
	for step := 1; step <= 3; step++ {
		before[step] = folderOf(t, dir, step)
	}
	aside, err := Archive(dir)
	if err != nil || filepath.Dir(aside) != dir {
		t.Fatalf("aside %q, %v", aside, err)
	}
	if list, err := List(dir); len(list) > 0 || err != nil {
		t.Errorf("still there: %v, %v", list, err)
	}
	has(t, aside, 1, 2, 3)
	for step, files := range before {
		if !maps.Equal(folderOf(t, aside, step), files) {
			t.Errorf("step %d has other files", step)
		}
	}
	mustWrite(t, dir, 1, content(1, 1)) // a new run is not in the old one's way
	if again, err := Archive(dir); err != nil || again == aside {
		t.Errorf("archived again into %q, %v", again, err)
	}
}

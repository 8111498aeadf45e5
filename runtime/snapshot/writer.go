package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Keep says which snapshots survive a new one.
type Keep struct {
	Newest int  // at least 1
	Best   bool // also the one with the least validation loss
}

// Writer takes one rank's part in writing snapshots. Begin, Wait and Close are
// called from one goroutine, the same sequence on every rank.
type Writer struct {
	dir       string
	keep      Keep
	group     Group
	disk      disk
	onWritten func(Written)
	chunk     int // bytes

	staging []byte // reused
	pending chan result
}

// result is how a snapshot in flight ended: whether it is there and whether
// there is an error are the same on every rank.
type result struct {
	written *Written
	err     error
}

// NewWriter prepares dir. Rank 0 makes it and sweeps what an interrupted writer
// left behind. Nothing else may write snapshots into dir at the same time.
func NewWriter(dir string, keep Keep, g Group) (*Writer, error) {
	return newWriter(dir, keep, g, disk{})
}

func newWriter(dir string, keep Keep, g Group, d disk) (*Writer, error) {
	if keep.Newest < 1 {
		return nil, fmt.Errorf("at least 1 snapshot must be kept, not %d", keep.Newest)
	}
	w := &Writer{dir: dir, keep: keep, group: g, disk: d, chunk: chunkBytes}
	if g.Rank() != 0 {
		return w, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	return w, w.sweep()
}

// sweep removes folders of unfinished and of retired snapshots.
func (w *Writer) sweep() error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			if err := w.disk.remove(filepath.Join(w.dir, e.Name())); err != nil {
				return fmt.Errorf("sweep an unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}

const temporary = ".unfinished-"

// OnWritten sets what rank 0 calls, from the background, for each snapshot that
// is safe on disk. Set it before the first Begin.
func (w *Writer) OnWritten(f func(Written)) { w.onWritten = f }

// Begin waits for the snapshot in flight, copies this rank's share of c aside
// and returns how long that took; the writing goes on in the background until
// ctx ends. Its error is the previous snapshot's, joined with ctx's or one of
// c's own; the previous one's does not keep the new one from being written.
func (w *Writer) Begin(ctx context.Context, c Content) (stall time.Duration, err error) {
	began := time.Now()
	_, previous := w.Wait(ctx)
	if ctx.Err() != nil {
		return 0, errors.Join(previous, ctx.Err())
	}
	meta, err := checked(c.Meta)
	if err != nil {
		return 0, errors.Join(previous, err)
	}
	files, err := layouts(c)
	if err != nil {
		return 0, errors.Join(previous, err)
	}
	job := &job{w: w, meta: meta, files: names(files), all: chunks(files, w.chunk)}
	job.mine = share(job.all, w.group.Rank(), w.group.Size())
	w.stage(files, job.mine)
	stall = time.Since(began)
	w.pending = make(chan result, 1)
	go func(done chan<- result) { done <- job.run(ctx, stall) }(w.pending)
	return stall, previous
}

// names keeps of the layouts what outlives the copy.
func names(files []layout) []file {
	var out []file
	for _, f := range files {
		out = append(out, file{Name: f.name, Bytes: f.size})
	}
	return out
}

// stage copies this rank's chunks one after the other.
func (w *Writer) stage(files []layout, mine []chunk) {
	total := 0
	for _, c := range mine {
		total += c.n
	}
	if cap(w.staging) < total {
		w.staging = make([]byte, total)
	}
	w.staging = w.staging[:total]
	at := 0
	for _, c := range mine {
		files[c.file].copyTo(w.staging[at:at+c.n], c.off)
		at += c.n
	}
}

// Wait returns when no snapshot is in flight. Written is nil when there was none
// or it failed; with an error as well, it is safe but an older one was not removed.
func (w *Writer) Wait(ctx context.Context) (*Written, error) {
	if w.pending == nil {
		return nil, nil
	}
	r := <-w.pending // ends soon after ctx does: the group and the files see to that
	w.pending = nil
	return r.written, r.err
}

// Close waits for the snapshot in flight.
func (w *Writer) Close() error {
	_, err := w.Wait(context.Background())
	return err
}

// failure joins the ranks' error texts into one error.
func failure(texts []string) error {
	var errs []error
	for rank, text := range texts {
		if text != "" {
			errs = append(errs, fmt.Errorf("rank %d: %s", rank, text))
		}
	}
	return errors.Join(errs...)
}

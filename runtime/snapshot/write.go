package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// job is one snapshot in flight, seen from one rank.
type job struct {
	w     *Writer
	meta  Meta
	files []file
	all   []chunk // of all ranks
	mine  []chunk // staged one after the other
}

func (j *job) final() string { return filepath.Join(j.w.dir, folderName(j.meta.Step)) }
func (j *job) tmp() string   { return filepath.Join(j.w.dir, temporary+folderName(j.meta.Step)) }

// run writes this rank's share and sees the snapshot through with the others.
func (j *job) run(ctx context.Context, stall time.Duration) result {
	began := time.Now()
	if err := j.write(ctx); err != nil {
		return result{err: hinted(fmt.Errorf("write snapshot of step %d: %w", j.meta.Step, err))}
	}
	written := &Written{Step: j.meta.Step, Path: j.final(), Bytes: manifest{Files: j.files}.bytes(), Stall: stall, Write: time.Since(began)}
	err := j.prune(ctx)
	if j.leads() && j.w.onWritten != nil {
		j.w.onWritten(*written)
	}
	if err != nil {
		err = hinted(fmt.Errorf("snapshot of step %d is written, but: %w", j.meta.Step, err))
	}
	return result{written: written, err: err}
}

// prune lets rank 0 remove older snapshots; all hear of its error.
func (j *job) prune(ctx context.Context) error {
	var err error
	if j.leads() {
		err = j.w.prune(j.meta.Step)
	}
	return j.agree(ctx, err)
}

func (j *job) leads() bool { return j.w.group.Rank() == 0 }

// write is: rank 0 makes the files, all write their chunks, rank 0 publishes.
// All ranks agree on how it went.
func (j *job) write(ctx context.Context) error {
	var err error
	if j.leads() {
		err = j.prepare()
	}
	if err := j.agree(ctx, err); err != nil {
		return errors.Join(err, j.abandon())
	}
	hashes, err := j.writeChunks(ctx)
	all, err := j.gather(ctx, hashes, err)
	if j.leads() && err == nil {
		err = j.publish(all)
	}
	if err := j.agree(ctx, err); err != nil {
		return errors.Join(err, j.abandon())
	}
	return nil
}

// prepare makes the temporary folder with all files at their full size, after
// what an earlier one could not remove.
func (j *job) prepare() error {
	if err := j.w.sweep(); err != nil {
		return err
	}
	if err := j.w.disk.mkdir(j.tmp()); err != nil {
		return err
	}
	for _, f := range j.files {
		if err := j.w.disk.create(filepath.Join(j.tmp(), f.Name), f.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// abandon takes away what an unfinished snapshot left.
func (j *job) abandon() error {
	if !j.leads() {
		return nil
	}
	return j.w.disk.remove(j.tmp())
}

// writeChunks writes, hashes and fsyncs this rank's chunks.
func (j *job) writeChunks(ctx context.Context) (hashes []string, err error) {
	at := 0
	for i := 0; i < len(j.mine); {
		n := 1
		for i+n < len(j.mine) && j.mine[i+n].file == j.mine[i].file {
			n++
		}
		part, err := j.writeFile(ctx, j.mine[i:i+n], &at)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, part...)
		i += n
	}
	return hashes, nil
}

// writeFile writes neighbouring chunks of one file; at moves through the staging.
func (j *job) writeFile(ctx context.Context, part []chunk, at *int) (hashes []string, err error) {
	f, err := os.OpenFile(filepath.Join(j.tmp(), j.files[part[0].file].Name), os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, c := range part {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := j.w.staging[*at : *at+c.n]
		*at += c.n
		if err := j.w.disk.writeAt(f, b, c.off); err != nil {
			return nil, err
		}
		hashes = append(hashes, hash(b))
	}
	return hashes, j.w.disk.sync(f)
}

// report is what each rank tells rank 0 about its chunks.
type report struct {
	Hashes []string `json:"hashes,omitempty"`
	Err    string   `json:"err,omitempty"`
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return hinted(err).Error()
}

// gather collects all hashes, in the order of the chunks, on rank 0.
func (j *job) gather(ctx context.Context, hashes []string, failed error) ([]string, error) {
	if j.w.group.Size() == 1 {
		return hashes, failed
	}
	b, err := json.Marshal(report{Hashes: hashes, Err: text(failed)})
	if err != nil {
		return nil, err
	}
	parts, err := j.w.group.Gather(ctx, b)
	if err != nil || !j.leads() {
		return nil, err
	}
	var all, texts []string
	for rank, p := range parts {
		var r report
		if err := json.Unmarshal(p, &r); err != nil {
			return nil, fmt.Errorf("rank %d's hashes: %w", rank, err)
		}
		all = append(all, r.Hashes...)
		texts = append(texts, r.Err)
	}
	return all, failure(texts)
}

// publish writes the manifest and gives the folder its name.
func (j *job) publish(hashes []string) error {
	if len(hashes) != len(j.all) {
		return fmt.Errorf("%d hashes for %d chunks", len(hashes), len(j.all))
	}
	for i, c := range j.all {
		j.files[c.file].Chunks = append(j.files[c.file].Chunks, hashes[i])
	}
	m, err := manifest{Format: formatNumber, Meta: j.meta, ChunkBytes: j.w.chunk, Files: j.files}.encode()
	if err != nil {
		return err
	}
	if err := j.writeManifest(m); err != nil {
		return err
	}
	if err := j.w.disk.syncDir(j.tmp()); err != nil {
		return err
	}
	return j.w.disk.publish(j.tmp(), j.final())
}

func (j *job) writeManifest(m []byte) (err error) {
	path := filepath.Join(j.tmp(), manifestName)
	if err := j.w.disk.create(path, 0); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := j.w.disk.writeAt(f, m, 0); err != nil {
		return err
	}
	return j.w.disk.sync(f)
}

// agree makes rank 0's error everybody's.
func (j *job) agree(ctx context.Context, mine error) error {
	if j.w.group.Size() == 1 {
		return mine
	}
	if !j.leads() && mine != nil {
		return mine // the group is broken: rank 0 learns it from the group as well
	}
	verdict, err := j.w.group.Broadcast(ctx, []byte(text(mine)))
	switch {
	case err != nil:
		return err
	case j.leads():
		return mine
	case len(verdict) > 0:
		return fmt.Errorf("rank 0: %s", verdict)
	}
	return nil
}

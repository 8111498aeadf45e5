package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// folderName is the name of step's snapshot.
func folderName(step int) string { return fmt.Sprintf("step-%09d", step) }

var folderPattern = regexp.MustCompile(`^step-(\d{9,18})$`)

// Snapshot is one on disk whose manifest is sound. Its methods may be called
// from any goroutine.
type Snapshot struct {
	Meta     Meta
	Path     string
	Step     int
	manifest manifest
}

// Open reads a snapshot's manifest and nothing else: see Verify.
func Open(path string) (*Snapshot, error) {
	text, err := readSmall(filepath.Join(path, manifestName))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	m, err := decodeManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	return &Snapshot{Meta: m.Meta, Path: path, Step: m.Meta.Step, manifest: m}, nil
}

// readSmall reads a manifest.
func readSmall(path string) ([]byte, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxManifest {
		return nil, fmt.Errorf("it has %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, err
	}
	return text, nil
}

// openRegular opens a file that is no link, device or pipe.
func openRegular(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		if errors.Is(err, unix.ELOOP) {
			err = errors.New("it is a symbolic link")
		}
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Files are the names of its files.
func (s *Snapshot) Files() []string {
	var names []string
	for _, f := range s.manifest.Files {
		names = append(names, f.Name)
	}
	return names
}

// verify compares every byte with its hash, on all cores.
func (s *Snapshot) verify() error {
	for _, f := range s.manifest.Files {
		if err := s.verifyFile(f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func (s *Snapshot) verifyFile(f file) error {
	r, size, err := openRegular(filepath.Join(s.Path, f.Name))
	if err != nil {
		return err
	}
	defer r.Close()
	if size != f.Bytes {
		return fmt.Errorf("it has %d bytes, want %d", size, f.Bytes)
	}
	workers := min(runtime.GOMAXPROCS(0), len(f.Chunks))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			buf := make([]byte, min(int64(s.manifest.ChunkBytes), f.Bytes))
			for i := w; i < len(f.Chunks) && errs[w] == nil; i += workers {
				errs[w] = s.verifyChunk(r, f, i, buf)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Snapshot) verifyChunk(r io.ReaderAt, f file, i int, buf []byte) error {
	off := int64(i) * int64(s.manifest.ChunkBytes)
	b := buf[:min(int64(len(buf)), f.Bytes-off)]
	if _, err := r.ReadAt(b, off); err != nil {
		return fmt.Errorf("read chunk %d of %d: %w", i+1, len(f.Chunks), err)
	}
	if hash(b) != f.Chunks[i] {
		return fmt.Errorf("chunk %d of %d differs from its hash", i+1, len(f.Chunks))
	}
	return nil
}

// Verify reads all of a snapshot and reports the first thing that is wrong.
func Verify(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	return s.verify()
}

// Info is a line of List.
type Info struct {
	Step    int
	Path    string
	Bytes   int64
	Time    time.Time
	ValLoss *float64
	Best    bool // has the least validation loss of all
	Meta    Meta
	Err     error // the manifest is missing or damaged; the rest is then empty
}

// List is every snapshot of dir, newest first, without reading the files. A
// folder that is not there has none.
func List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, e := range entries {
		m := folderPattern.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		step, err := strconv.Atoi(m[1])
		if err != nil {
			continue // more digits than a step has
		}
		list = append(list, describe(filepath.Join(dir, e.Name()), step))
	}
	slices.SortFunc(list, func(a, b Info) int { return b.Step - a.Step })
	if i := best(list); i >= 0 {
		list[i].Best = true
	}
	return list, nil
}

func describe(path string, step int) Info {
	s, err := Open(path)
	if err == nil && s.Step != step {
		err = fmt.Errorf("the folder says step %d, its manifest %d", step, s.Step)
	}
	if err != nil {
		return Info{Step: step, Path: path, Err: err}
	}
	return Info{Step: step, Path: path, Bytes: s.manifest.bytes(), Time: s.Meta.Time, ValLoss: s.Meta.ValLoss, Meta: s.Meta}
}

// best is the index of the least validation loss, of equals the newest; -1 when none has one.
func best(list []Info) int {
	at := -1
	for i, info := range list {
		if info.Err == nil && info.ValLoss != nil && (at < 0 || *info.ValLoss < *list[at].ValLoss) {
			at = i
		}
	}
	return at
}

// Problem is a snapshot that was passed over.
type Problem struct {
	Path string
	Err  error
}

func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// Newest is the newest snapshot of dir that is good to the last byte, nil when
// there is none; bad are the newer ones that are not.
func Newest(dir string) (s *Snapshot, bad []Problem, err error) {
	list, err := List(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range list {
		err := info.Err
		if err == nil {
			if s, err = Open(info.Path); err == nil {
				err = s.verify()
			}
		}
		if err == nil {
			return s, bad, nil
		}
		bad = append(bad, Problem{info.Path, err})
	}
	return nil, bad, nil
}

// Blob reads a small file.
func (s *Snapshot) Blob(name string) ([]byte, error) {
	i := slices.IndexFunc(s.manifest.Files, func(f file) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("snapshot %s has no file %s", s.Path, name)
	}
	b, err := readSmall(filepath.Join(s.Path, name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// Load fills the tensors of into from one safetensors file. Each must be there
// with its shape; others are left alone.
func (s *Snapshot) Load(name string, into []Tensor) error {
	f, size, err := openRegular(filepath.Join(s.Path, name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	entries, data, err := readHeader(f, size)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range into {
		e, ok := entries[t.Name]
		if !ok {
			return fmt.Errorf("%s: tensor %s is missing", name, t.Name)
		}
		if !slices.Equal(e.Shape, t.Shape) {
			return fmt.Errorf("%s: tensor %s has shape %v, want %v", name, t.Name, e.Shape, t.Shape)
		}
		if n, _ := elements(e.Shape); n != len(t.Data) {
			return fmt.Errorf("%s: tensor %s of shape %v cannot be read into %d values", name, t.Name, e.Shape, len(t.Data))
		}
		if _, err := f.ReadAt(bytesOf(t.Data), data+int64(e.Offsets[0])); err != nil {
			return fmt.Errorf("%s: read tensor %s: %w", name, t.Name, err)
		}
	}
	return nil
}

func sortedByName(tensors []Tensor) []Tensor {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

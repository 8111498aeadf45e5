package elastic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// tailLines is how many of a rank's last lines a Failure shows.
const tailLines = 50

// output takes the ranks' lines to log files and to the Spec's functions. All
// calls of those functions are made under its lock.
type output struct {
	spec *Spec

	mu    sync.Mutex
	files map[string]*os.File
	bad   map[string]bool // log files that could not be written
	tails map[int]*tail   // by rank, of the current generation
	gen   int
}

func newOutput(spec *Spec) *output {
	return &output{spec: spec, files: map[string]*os.File{}, bad: map[string]bool{}, tails: map[int]*tail{}}
}

// begin makes generation gen the current one.
func (o *output) begin(gen int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeFiles()
	o.gen, o.tails = gen, map[int]*tail{}
}

// folder is the log folder of the current generation.
func (o *output) folder() string { return filepath.Join(o.spec.LogDir, fmt.Sprintf("gen-%d", o.gen)) }

// line passes on a line of a rank of the current generation.
func (o *output) line(l *lineReport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.Stream == eventStream {
		if o.spec.OnEvent != nil {
			o.spec.OnEvent(l.Gen, l.Rank, l.Text)
		}
		return
	}
	if o.tails[l.Rank] == nil {
		o.tails[l.Rank] = &tail{}
	}
	o.tails[l.Rank].add(string(l.Text))
	if err := o.log(l); err != nil {
		o.tell(l, []byte(fmt.Sprintf("ddp: this rank's log is incomplete: %v", err)))
	}
	o.tell(l, l.Text)
}

func (o *output) tell(l *lineReport, text []byte) {
	if o.spec.OnLine != nil {
		o.spec.OnLine(l.Gen, l.Rank, l.Stream, text)
	}
}

// log appends to the rank's log file, byte for byte what the rank wrote. A file
// that fails is not tried again: its error is returned once.
func (o *output) log(l *lineReport) error {
	if o.spec.LogDir == "" {
		return nil
	}
	name := filepath.Join(o.folder(), fmt.Sprintf("rank-%d.%s", l.Rank, map[string]string{"stdout": "out", "stderr": "err"}[l.Stream]))
	if o.bad[name] {
		return nil
	}
	err := o.append(name, l)
	o.bad[name] = err != nil
	return err
}

func (o *output) append(name string, l *lineReport) error {
	file := o.files[name]
	if file == nil {
		err := o.makeFolder()
		if err != nil {
			return err
		}
		if file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644); err != nil {
			return err
		}
		o.files[name] = file
	}
	text := l.Text
	if !l.Part {
		text = append(text[:len(text):len(text)], '\n')
	}
	_, err := file.Write(text)
	return err
}

// makeFolder makes the log folder when there is something to put into it: a disk
// that is full is no reason for a generation not to begin.
func (o *output) makeFolder() error {
	if err := os.MkdirAll(o.folder(), 0o755); err != nil {
		return fmt.Errorf("make log folder: %w", err)
	}
	return nil
}

// tail returns the rank's last lines.
func (o *output) tail(rank int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tails[rank] == nil {
		return nil
	}
	return o.tails[rank].lines()
}

// keep writes a text of a rank's into the log folder and returns its path; "" when
// there is no folder, or no text.
func (o *output) keep(rank int, name string, text []byte) (string, error) {
	if o.spec.LogDir == "" || len(text) == 0 {
		return "", nil
	}
	path := filepath.Join(o.folder(), fmt.Sprintf("rank-%d.%s", rank, name))
	err := o.makeFolder()
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	return path, nil
}

// call runs one of the Spec's functions.
func (o *output) call(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closeFiles()
}

func (o *output) closeFiles() error {
	var errs []error
	for name, f := range o.files {
		errs = append(errs, f.Close())
		delete(o.files, name)
	}
	return errors.Join(errs...)
}

// tail is a ring of a rank's last lines.
type tail struct {
	ring []string
	next int
}

func (t *tail) add(line string) {
	const longest = 4 << 10 // a failure is to be read by a person
	if len(line) > longest {
		line = line[:longest] + "..."
	}
	if len(t.ring) < tailLines {
		t.ring = append(t.ring, line)
		return
	}
	t.ring[t.next] = line
	t.next = (t.next + 1) % tailLines
}

// lines returns them, oldest first.
func (t *tail) lines() []string {
	return append(append([]string(nil), t.ring[t.next:]...), t.ring[:t.next]...)
}

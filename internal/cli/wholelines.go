package cli

import (
	"errors"
	"fmt"
	"os"
)

// wholeLines is a file that holds each of its writes in one piece or not at all:
// what a full disk cuts off is taken back. It has one writer.
type wholeLines struct {
	*os.File
	size int64 // bytes of whole writes
}

// createLines makes the file, or empties it.
func createLines(path string) (*wholeLines, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return nil, err
	}
	return &wholeLines{File: f}, nil
}

// Write appends b.
func (w *wholeLines) Write(b []byte) (int, error) {
	n, err := w.File.Write(b)
	if err == nil {
		w.size += int64(n)
		return n, nil
	}
	if undo := w.Truncate(w.size); undo != nil {
		err = errors.Join(err, fmt.Errorf("take %d bytes back: %w", n, undo))
	}
	return 0, err
}

package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// prune removes what Keep does not keep, and the snapshot that the newest
// replaced, once the newest one's manifest has been read back. Damaged folders are left for a person to look at, and
// folders newer than the newest belong to another run.
func (w *Writer) prune(newest int) error {
	if _, err := Open(filepath.Join(w.dir, folderName(newest))); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	if err := w.sweep(); err != nil {
		return err
	}
	list, err := List(w.dir)
	if err != nil {
		return err
	}
	kept := 0
	for _, info := range list {
		if info.Err != nil || info.Step > newest {
			continue
		}
		if kept++; kept <= w.keep.Newest || w.keep.Best && info.Best {
			continue
		}
		if err := w.retire(info.Path); err != nil {
			return fmt.Errorf("remove an old snapshot: %w", err)
		}
	}
	return nil
}

// retire removes a snapshot. It loses its name first: killed in between, what is
// left is swept, and never looks like a damaged snapshot.
func (w *Writer) retire(path string) error {
	aside := filepath.Join(w.dir, temporary+filepath.Base(path))
	if err := w.disk.rename(path, aside, 0); err != nil {
		return err
	}
	return w.disk.remove(aside)
}

// Archive moves all snapshots of dir into a new folder inside it and returns its
// path, "" when there was nothing to move. Nothing is ever deleted.
func Archive(dir string) (string, error) {
	list, err := List(dir)
	if err != nil || len(list) == 0 {
		return "", err
	}
	aside, err := os.MkdirTemp(dir, "archive-"+time.Now().UTC().Format("20060102T150405")+"-")
	if err != nil {
		return "", err
	}
	for _, info := range list {
		if err := os.Rename(info.Path, filepath.Join(aside, filepath.Base(info.Path))); err != nil {
			return "", err
		}
	}
	return aside, nil
}

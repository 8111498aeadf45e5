package observe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Follow calls each for every line of a file, without its newline, and goes on
// with those that are added to it, until over is closed and the file is read to
// its end, or ctx ends, whose cause it returns. A last line without newline
// counts when over is closed. line is the caller's again when each returns; an
// error of each ends Follow with it.
func Follow(ctx context.Context, path string, over <-chan struct{}, each func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	defer f.Close()
	changes, err := watchFile(path)
	if err != nil {
		return fmt.Errorf("follow %s: %w", path, err)
	}
	defer changes.close()
	in, part := bufio.NewReader(f), []byte(nil)
	for last := false; ; {
		text, err := in.ReadSlice('\n')
		part = append(part, text...)
		switch {
		case err == nil:
			if err := each(part[:len(part)-1]); err != nil {
				return err
			}
			part = part[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("follow: %w", err)
		case last && len(part) > 0:
			return each(part)
		case last:
			return nil
		default:
			select {
			case <-changes.c:
			case <-over:
				last = true // read what came before
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// changes holds a token in c after a file has changed.
type changes struct {
	c      chan struct{}
	notify *os.File
	ended  chan struct{}
}

// watchFile asks the kernel for a file's changes: inotify(7).
func watchFile(path string) (*changes, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch: %w (fs.inotify.max_user_instances?)", err)
	}
	w := &changes{c: make(chan struct{}, 1), notify: os.NewFile(uintptr(fd), "inotify"), ended: make(chan struct{})}
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MODIFY); err != nil {
		w.notify.Close()
		return nil, fmt.Errorf("watch: %w", err)
	}
	go w.read()
	return w, nil
}

func (w *changes) read() {
	defer close(w.ended)
	buffer := make([]byte, 4<<10)
	for {
		if _, err := w.notify.Read(buffer); err != nil {
			return
		}
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

func (w *changes) close() {
	w.notify.Close()
	<-w.ended
}

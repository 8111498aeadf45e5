package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// disk does everything that changes files. before, unless nil, is called ahead
// of each change and may fail it, or never return: tests kill the process there.
type disk struct {
	before func(op, path string) error
}

func (d disk) ahead(op, path string) error {
	if d.before == nil {
		return nil
	}
	return d.before(op, path)
}

// mkdir makes one folder; its parents must be there.
func (d disk) mkdir(path string) error {
	if err := d.ahead("mkdir", path); err != nil {
		return err
	}
	return os.Mkdir(path, 0o777)
}

// create makes a file of size bytes, which must not be there yet.
func (d disk) create(path string, size int64) error {
	if err := d.ahead("create", path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// writeAt writes b into an existing file.
func (d disk) writeAt(f *os.File, b []byte, off int64) error {
	if err := d.ahead("write", f.Name()); err != nil {
		return err
	}
	_, err := f.WriteAt(b, off)
	return err
}

// sync makes a file's or a folder's content durable. An error is final for it:
// the kernel forgets what it could not write.
func (d disk) sync(f *os.File) error {
	if err := d.ahead("sync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

func (d disk) syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(f), f.Close())
}

// publish gives the folder its final name in one step: a folder that has the
// name already changes places with it, so there is always one. When the name
// cannot be made durable it is taken back: a snapshot that failed is not there.
func (d disk) publish(tmp, final string) error {
	flags := uint(unix.RENAME_NOREPLACE)
	err := d.rename(tmp, final, flags)
	switch {
	case errors.Is(err, unix.EEXIST):
		flags = unix.RENAME_EXCHANGE
		err = d.rename(tmp, final, flags)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // a file system without the flags
		flags = 0
		err = d.rename(tmp, final, flags)
	}
	if err != nil {
		return err
	}
	if err := d.syncDir(filepath.Dir(final)); err != nil {
		return errors.Join(err, d.rename(final, tmp, flags))
	}
	return nil
}

func (d disk) rename(from, to string, flags uint) error {
	if err := d.ahead("rename", to); err != nil {
		return err
	}
	if flags == 0 {
		return os.Rename(from, to)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags); err != nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, err)
	}
	return nil
}

// remove deletes a temporary folder and what is in it.
func (d disk) remove(path string) error {
	if err := d.ahead("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// hinted adds what the user can do.
func hinted(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w (the disk is full: free some space, or set snapshot.keep lower or snapshot.dir elsewhere)", err)
	}
	return err
}

package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDamage spoils each file of the newest snapshot in several ways: it is
// named, and the older one is taken.
func TestDamage(t *testing.T) {
	flip := func(at func(size int) int) func(string) error {
		return func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil || len(b) == 0 {
				return err
			}
			b[at(len(b))] ^= 0x10
			return os.WriteFile(path, b, 0o666)
		}
	}
	ways := map[string]func(path string) error{
		"first bit":  flip(func(int) int { return 0 }),
		"middle bit": flip(func(n int) int { return n / 2 }),
		"last bit":   flip(func(n int) int { return n - 1 }),
		"removed":    os.Remove,
		"a byte less": func(path string) error {
			info, err := os.Stat(path)
			if err != nil || info.Size() == 0 {
				return err
			}
			return os.Truncate(path, info.Size()-1)
		},
		"a byte more": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write([]byte{'x'})
			return errors.Join(err, f.Close())
		},
		"a link": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(filepath.Base(path)+".moved", path))
		},
		"a pipe":   func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o666)) },
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) },
	}
	for _, name := range []string{"model.safetensors", "optimizer.safetensors", "config.json", manifestName} {
		for way, spoil := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				dir := t.TempDir()
				if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, 1, 2); err != nil {
					t.Fatal(err)
				}
				if err := spoil(filepath.Join(dir, folderName(2), name)); err != nil {
					t.Fatal(err)
				}
				s, bad, err := Newest(dir)
				if err != nil || s == nil || s.Step != 1 || len(bad) != 1 {
					t.Fatalf("newest %v, bad %v, %v", s, bad, err)
				}
				if text := bad[0].Error(); !strings.Contains(text, folderName(2)) || !strings.Contains(text, name) {
					t.Errorf("the damage is told as %q", text)
				}
				holds(t, s)
			})
		}
	}
}

func TestAllDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, 1, 2); err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 2} {
		if err := os.Remove(filepath.Join(dir, folderName(step), manifestName)); err != nil {
			t.Fatal(err)
		}
	}
	if s, bad, err := Newest(dir); s != nil || len(bad) != 2 || err != nil {
		t.Errorf("newest %v, bad %v, %v", s, bad, err)
	}
}

// TestEveryOperationFails lets each disk operation fail once: all ranks hear of
// it, the older snapshot stays, nothing is left over, and the next one works.
func TestEveryOperationFails(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		for failAt := 1; ; failAt++ {
			dir := t.TempDir()
			if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, 1); err != nil {
				t.Fatal(err)
			}
			n := make(chan int, 1)
			n <- 0
			failed := false
			d := disk{before: func(op, _ string) error {
				i := <-n + 1
				n <- i
				if i == failAt && op != "remove" {
					failed = true
					return syscall.ENOSPC
				}
				return nil
			}}
			err := writeAll(dir, ranks, d, Keep{Newest: 3}, 2)
			if <-n < failAt {
				break
			}
			s, bad, newestErr := Newest(dir)
			if newestErr != nil || s == nil || len(bad) > 0 {
				t.Fatalf("%d ranks, operation %d: newest %v, bad %v, %v", ranks, failAt, s, bad, newestErr)
			}
			holds(t, s)
			if failed && (err == nil || strings.Count(err.Error(), "the disk is full") < ranks) {
				t.Errorf("%d ranks, operation %d: error %v", ranks, failAt, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, temporary+"*")); len(left) > 0 {
				t.Errorf("%d ranks, operation %d: left %v", ranks, failAt, left)
			}
			if err := writeAll(dir, ranks, disk{}, Keep{Newest: 3}, 3); err != nil {
				t.Errorf("%d ranks, operation %d: the next snapshot: %v", ranks, failAt, err)
			}
		}
	}
}

// TestFullDisk fills a real file system.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, 1); err != nil {
		t.Fatal(err)
	}
	err := writeAll(dir, 2, disk{}, Keep{Newest: 3}, 2)
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("error %v", err)
	}
	s, bad, err := Newest(dir)
	if err != nil || s == nil || s.Step != 1 || len(bad) > 0 {
		t.Fatalf("newest %v, bad %v, %v", s, bad, err)
	}
	holds(t, s)
	w, err := NewWriter(dir, Keep{Newest: 3}, newGroups(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	small := content(2)
	small.Tensors = nil
	if _, err := w.Begin(context.Background(), small); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("a small snapshot in what is left: %v", err)
	}
}

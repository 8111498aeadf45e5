package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// damage spoils a file; says is a part of what must be told about it.
type damage struct {
	spoil func(path string) error
	says  string
}

// flip inverts one bit.
func flip(at func(size int) int) damage {
	return damage{func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[at(len(b))] ^= 0x10
		return os.WriteFile(path, b, 0o666)
	}, "differs from its hash"}
}

// spoiled are ways to damage a file with content; those in anyFile need none.
var spoiled = map[string]damage{
	"first bit":     flip(func(int) int { return 0 }),
	"bit in header": flip(func(n int) int { return min(20, n-1) }),
	"middle bit":    flip(func(n int) int { return n / 2 }),
	"last bit":      flip(func(n int) int { return n - 1 }),
	"a byte less": {func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, info.Size()-1)
	}, "bytes, want"},
}

var anyFile = map[string]damage{
	"a byte more": {func(path string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte{'x'})
		return errors.Join(err, f.Close())
	}, "bytes, want"},
	"removed": {os.Remove, "no such file"},
	"a link": {func(path string) error {
		aside := filepath.Join(filepath.Dir(filepath.Dir(path)), "moved")
		return errors.Join(os.Rename(path, aside), os.Symlink(aside, path))
	}, "symbolic link"},
	"a pipe":   {func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o666)) }, "no regular file"},
	"a folder": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o777)) }, "no regular file"},
}

// TestDamage spoils each file of the newest snapshot in several ways: it is
// named, with what is wrong, and the older one is taken.
func TestDamage(t *testing.T) {
	for _, name := range []string{"model.safetensors", "none.safetensors", "optimizer.safetensors", "config.json", "empty", manifestName} {
		for way, d := range anyFile {
			t.Run(name+" "+way, func(t *testing.T) { damaged(t, name, d) })
		}
		if name == "empty" {
			continue
		}
		for way, d := range spoiled {
			t.Run(name+" "+way, func(t *testing.T) { damaged(t, name, d) })
		}
	}
}

func damaged(t *testing.T, name string, d damage) {
	t.Parallel()
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0), content(2, 0))
	folder := filepath.Join(dir, folderName(2))
	if err := d.spoil(filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
	says := d.says
	if name == manifestName && (strings.Contains(says, "bytes, want") || strings.Contains(says, "hash")) {
		says = "" // it has no record of its own size; which check sees a bit is not told
	}
	verified := Verify(folder)
	if verified == nil || !strings.HasPrefix(verified.Error(), name+": ") || !strings.Contains(verified.Error(), says) {
		t.Errorf("the damage is told as %q, want %q", verified, says)
	}
	s, bad, err := Newest(dir)
	if err != nil || len(bad) != 1 || bad[0].Path != folder || bad[0].Err.Error() != verified.Error() {
		t.Fatalf("newest: bad %v, %v", bad, err)
	}
	holds(t, s, content(1, 0))
}

// TestEveryBitOfTheManifest flips each of them.
func TestEveryBitOfTheManifest(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0))
	text, err := os.ReadFile(filepath.Join(dir, folderName(1), manifestName))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(text) {
		text[i/8] ^= 1 << (i % 8)
		if _, err := decodeManifest(text); err == nil {
			t.Errorf("bit %d of byte %d can be flipped", i%8, i/8)
		}
		text[i/8] ^= 1 << (i % 8)
	}
}

// TestRenamedFolder holds that a renamed folder is no snapshot.
func TestRenamedFolder(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0), content(2, 0))
	if err := os.Rename(filepath.Join(dir, folderName(2)), filepath.Join(dir, folderName(7))); err != nil {
		t.Fatal(err)
	}
	s, bad, err := Newest(dir)
	if err != nil || len(bad) != 1 || !strings.Contains(bad[0].Error(), "its manifest 2") {
		t.Fatalf("newest: bad %v, %v", bad, err)
	}
	holds(t, s, content(1, 0))
}

func TestAllDamaged(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0), content(2, 0))
	for step, name := range map[int]string{1: manifestName, 2: "model.safetensors"} {
		if err := os.Remove(filepath.Join(dir, folderName(step), name)); err != nil {
			t.Fatal(err)
		}
	}
	s, bad, err := Newest(dir)
	if s != nil || len(bad) != 2 || err != nil || !strings.Contains(bad[0].Error(), folderName(2)) || !strings.Contains(bad[1].Error(), folderName(1)) {
		t.Errorf("newest %v, bad %v, %v", s, bad, err)
	}
}

// TestDamagedSurvivePruning holds that damaged folders are left for a person.
func TestDamagedSurvivePruning(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0), content(2, 0))
	if err := os.Remove(filepath.Join(dir, folderName(2), manifestName)); err != nil {
		t.Fatal(err)
	}
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 1}, content(3, 0)); err != nil {
		t.Fatal(err)
	}
	has(t, dir, 2, 3)
}

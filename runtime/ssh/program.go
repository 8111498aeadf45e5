package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Program is what hosts are to run.
type Program struct {
	file   string // from which it is copied
	path   string // where hosts with the same file system have it; "": nowhere
	hash   string // SHA-256 in hexadecimal
	system string // what `uname -sm` says where it runs
}

// Self is the program of this process, as it was when the process started.
var Self = sync.OnceValues(func() (Program, error) {
	p := Program{file: "/proc/self/exe"}
	var err error
	if p.hash, err = hashOf(p.file); err != nil {
		return p, fmt.Errorf("read this program: %w", err)
	}
	if path, err := os.Executable(); err == nil && plain(path) {
		p.path = path
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return p, fmt.Errorf("ask what system this is: %w", err)
	}
	p.system = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	return p, nil
})

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// plain tells whether no shell takes path for anything but a word.
func plain(path string) bool {
	return !strings.ContainsFunc(path, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("/._+-", c))
	})
}

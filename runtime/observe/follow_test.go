package observe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFollow reads lines that are there, that come in pieces and one longer than
// any buffer, and ends with the file.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long := strings.Repeat("x", 1<<17)
	fmt.Fprint(f, "one\ntwo\nthr")
	over := make(chan struct{})
	var got []string
	next := map[string]func(){
		"two":   func() { fmt.Fprint(f, "ee\n"+long) },
		"three": func() { fmt.Fprint(f, "\n\n") },
		"":      func() { fmt.Fprint(f, "rest"); close(over) },
	}
	err = Follow(context.Background(), path, over, func(line []byte) error {
		got = append(got, string(line))
		if act := next[string(line)]; act != nil {
			act()
		}
		return nil
	})
	if want := []string{"one", "two", "three", long, "", "rest"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d lines %.40q, %v", len(got), got, err)
	}
}

func TestFollowEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := Follow(context.Background(), path, nil, func([]byte) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error %v, want the caller's", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	err := Follow(ctx, path, nil, func(line []byte) error {
		if string(line) == "b" {
			cancel(enough)
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v, want the context's cause", err)
	}
}

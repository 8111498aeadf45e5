package cpu

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	memoryAndArithmetic = "-fsanitize=address,undefined"
	races               = "-fsanitize=thread"
)

// TestSanitizers runs the C files under gcc's sanitizers, which see what a fault
// or a wrong result would not show: reads of a neighbour's memory, undefined
// arithmetic, races between threads.
func TestSanitizers(t *testing.T) {
	operations, err := filepath.Glob("*.c")
	if err != nil {
		t.Fatal(err)
	}
	operations = append(operations, "testdata/sweep.c")
	pool := []string{"-Wl,--wrap=pthread_create", "pool.c", "testdata/pool.c"}
	for _, s := range []struct {
		name, flag string
		sources    []string
		threads    []string // of one run each
	}{
		{"memory and arithmetic of operations", memoryAndArithmetic, operations, []string{"1", "3"}},
		{"races of operations", races, operations, []string{"3"}},
		{"memory of the pool", memoryAndArithmetic, pool, []string{"1", "3"}},
		{"races of the pool", races, pool, []string{"3", "6"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			program := sanitized(t, s.flag, s.sources)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // it takes seconds, unless threads wait for ever
			defer cancel()
			for _, threads := range s.threads {
				if out, err := exec.CommandContext(ctx, program, threads).CombinedOutput(); err != nil {
					t.Errorf("%s threads: %v, %v\n%s", threads, err, ctx.Err(), out)
				}
			}
		})
	}
}

// sanitized builds a program that ends at a sanitizer's first finding.
func sanitized(t *testing.T, flag string, sources []string) string {
	t.Helper()
	compile := compiler(t, flag)
	program := filepath.Join(t.TempDir(), "program")
	args := append([]string{"-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fno-sanitize-recover=all", "-I.", flag, "-o", program}, sources...)
	if out, err := compile(append(args, "-lm", "-lpthread")...); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	return program
}

// compiler runs the C compiler. It skips the test where that, or the flag's
// runtime library, is not installed: an empty program shows it.
func compiler(t *testing.T, flag string) func(args ...string) ([]byte, error) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	words := strings.Fields(cc)
	compile := func(args ...string) ([]byte, error) {
		return exec.Command(words[0], append(words[1:len(words):len(words)], args...)...).CombinedOutput()
	}
	empty := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(empty, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := compile(flag, "-o", empty+".out", empty); err != nil {
		t.Skipf("%s cannot build with %s here: %s", cc, flag, out)
	}
	if out, err := exec.Command(empty + ".out").CombinedOutput(); err != nil {
		t.Skipf("programs built with %s do not run here: %s", flag, out)
	}
	return compile
}

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

// TestSanitizers compiles the C files and testdata/sweep.c under gcc's
// sanitizers, which see what a fault or a wrong result would not show: reads of
// a neighbour's memory, undefined arithmetic, races between threads.
func TestSanitizers(t *testing.T) {
	for _, s := range []struct{ name, flag, threads string }{
		{"memory and arithmetic", "-fsanitize=address,undefined", "1"},
		{"races", "-fsanitize=thread", "3"},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			compile := compiler(t, s.flag)
			files, err := filepath.Glob("*.c")
			if err != nil {
				t.Fatal(err)
			}
			sweep := filepath.Join(t.TempDir(), "sweep")
			args := append([]string{"-O1", "-g", "-std=gnu11", "-Wno-psabi", "-fno-sanitize-recover=all", "-I.", s.flag, "-o", sweep, "testdata/sweep.c"}, files...)
			if out, err := compile(append(args, "-lm", "-lpthread")...); err != nil {
				t.Fatalf("compile the sweep: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // it takes seconds, unless threads wait for ever
			defer cancel()
			if out, err := exec.CommandContext(ctx, sweep, s.threads).CombinedOutput(); err != nil {
				t.Fatalf("run the sweep: %v, %v\n%s", err, ctx.Err(), out)
			}
		})
	}
}

// compiler runs the C compiler. It skips the test where that, or the flag's
// runtime library, is not installed: an empty program shows it.
func compiler(t *testing.T, flag string) func(args ...string) ([]byte, error) {
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

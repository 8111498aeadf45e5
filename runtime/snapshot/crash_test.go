package snapshot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// Variables that make the test binary a writer which kills itself.
const (
	dirVariable   = "SNAPSHOT_TEST_DIR"
	killVariable  = "SNAPSHOT_TEST_KILL"  // number of the disk operation to die at
	ranksVariable = "SNAPSHOT_TEST_RANKS" // goroutines that write together
	stepVariable  = "SNAPSHOT_TEST_STEP"  // step to write, in version 1
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(dirVariable); dir != "" {
		os.Exit(dyingWriter(dir))
	}
	goleak.VerifyTestMain(m)
}

func number(variable string) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		panic(err)
	}
	return n
}

// dyingWriter writes a snapshot, tells of each disk operation ahead of it and
// kills its process at the given one, whichever rank is at it.
func dyingWriter(dir string) int {
	killAt := number(killVariable)
	var mu sync.Mutex
	n := 0
	d := disk{before: func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(op, path)
		if n++; n == killAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}
	if err := writeAll(dir, number(ranksVariable), d, Keep{Newest: 1}, content(number(stepVariable), 1)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestKilledAnywhere kills the writer at each of its disk operations: the newest
// good snapshot is there, whole, and the next writer carries on.
func TestKilledAnywhere(t *testing.T) {
	for _, c := range []crash{{1, 1, 2}, {2, 1, 2}, {1, 2, 2}, {2, 2, 2}} {
		t.Run(fmt.Sprintf("%d ranks, step %d after %d", c.ranks, c.step, c.before), func(t *testing.T) {
			t.Parallel()
			for killAt := 1; ; killAt++ {
				if killAt > 200 {
					t.Fatal("the writer never ends")
				}
				if !c.killedAt(t, killAt) {
					if killAt < 20 {
						t.Errorf("only %d operations: the hook is not everywhere", killAt)
					}
					return
				}
			}
		})
	}
}

// crash is a writer of step that finds a good snapshot of step before, and
// keeps only its own.
type crash struct{ ranks, before, step int }

// killedAt is false when the writer ended before that operation.
func (c crash) killedAt(t *testing.T, killAt int) bool {
	dir := t.TempDir()
	older, newer := content(c.before, 0), content(c.step, 1)
	mustWrite(t, dir, 1, older)
	ops, killed := c.run(t, dir, killAt)
	// The folder that holds all is synced once the new name is there.
	published := strings.Contains(ops, "sync "+dir+"\n")
	if !published && !killed {
		t.Fatalf("the writer ended without publishing:\n%s", ops)
	}
	newest := older
	if published {
		newest = newer
	}
	newestHolds(t, dir, newest)
	if !killed {
		has(t, dir, c.step)
	}
	rs, err := open(1, dir, Keep{Newest: 9}, disk{})
	if err != nil {
		t.Fatalf("the next writer: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if err := Verify(filepath.Join(dir, e.Name())); err != nil || !folderPattern.MatchString(e.Name()) {
			t.Errorf("the next writer left %s, which is no whole snapshot: %v", e.Name(), err)
		}
	}
	newestHolds(t, dir, newest)
	if _, errs := rs.write(content(c.step, 2)); errs[0] != nil {
		t.Fatalf("the same step again: %v", errs[0])
	}
	newestHolds(t, dir, content(c.step, 2))
	if t.Failed() {
		t.Fatalf("killed at the last of these operations:\n%s", ops)
	}
	return killed
}

// run runs the writer; ops are the operations that it came to, a line each.
func (c crash) run(t *testing.T, dir string, killAt int) (ops string, killed bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, fmt.Sprintf("%s=%d", killVariable, killAt),
		fmt.Sprintf("%s=%d", ranksVariable, c.ranks), fmt.Sprintf("%s=%d", stepVariable, c.step))
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	var exit *exec.ExitError
	killed = errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	if err != nil && !killed {
		t.Fatalf("writer: %v\n%s", err, problems.String())
	}
	return out.String(), killed
}

package cpu

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process's threads have computed so far.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestIdleThreadsSleep: after an operation, and between operations far apart,
// the threads of a pool must not keep looking for the next one.
func TestIdleThreadsSleep(t *testing.T) {
	const pause, most = time.Second, 200 * time.Millisecond // one thread that looks on would take all of the second
	b := open(t, "generic", 4)
	x, y := ones(b, 1<<18), b.Alloc(1<<18)
	b.Add(y, x)
	before := cpuTime(t)
	time.Sleep(pause) // idle time is what is measured
	if used := cpuTime(t) - before; used > most {
		t.Errorf("4 idle threads took %v of CPU time in %v", used, pause)
	} else {
		t.Logf("4 idle threads took %v of CPU time in %v", used, pause)
	}
}

// TestMoreThreadsThanCores wants of 16 threads not much more CPU time than of 1:
// who waits for a core in vain must not hold up, nor outwait, those that have one.
func TestMoreThreadsThanCores(t *testing.T) {
	used := map[int]time.Duration{}
	for _, threads := range []int{1, 16} {
		b := open(t, "generic", threads)
		x, y := ones(b, 1<<20), b.Alloc(1<<20)
		b.Add(y, x)
		before := cpuTime(t)
		for range 200 {
			b.Add(y, x)
		}
		used[threads] = cpuTime(t) - before
		if got := y.Host()[1<<20-1]; got != 201 {
			t.Fatalf("%d threads: 201 additions of 1 make %v", threads, got)
		}
	}
	t.Logf("CPU time of 200 additions: %v with 1 thread, %v with 16", used[1], used[16])
	if used[16] > 10*used[1]+time.Second {
		t.Errorf("16 threads took %v of CPU time, 1 takes %v", used[16], used[1])
	}
}

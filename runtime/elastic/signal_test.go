package elastic

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// stopped starts a job, waits for n ranks to be up, and signals it.
func stopped(t *testing.T, behaviour string, n int, grace time.Duration, signals ...os.Signal) (*job, Result) {
	t.Helper()
	j := newJob(t, behaviour, n)
	j.spec.Grace = grace
	j.spec.MaxRestarts = 5
	ch := make(chan os.Signal, len(signals))
	j.spec.Signals = ch
	return j, j.run(func() {
		j.await(n)
		for _, s := range signals {
			ch <- s
		}
	})
}

func TestFirstSignalStopsCleanly(t *testing.T) {
	for _, c := range []struct {
		behaviour string
		sig       syscall.Signal
		want      int
	}{
		{"*.*=graceful:0", syscall.SIGINT, 130},
		{"*.*=graceful:143", syscall.SIGTERM, 143},
		{"*.*=wait", syscall.SIGTERM, 143}, // SIGTERM's default ends them
	} {
		j, res := stopped(t, c.behaviour, 2, 0, c.sig)
		if res.ExitCode != c.want || res.Stopped != c.sig || res.Restarts != 0 || res.Failure != nil {
			t.Errorf("%s: result %+v", c.behaviour, res)
		}
		if c.sig == syscall.SIGINT && !slices.Equal(j.lines["1.stdout"], []string{"got terminated"}) {
			t.Errorf("rank 1 said %q", j.lines["1.stdout"])
		}
	}
}

func TestStopThatIsNotClean(t *testing.T) {
	_, res := stopped(t, "0.*=graceful:0 1.*=graceful:7", 2, 0, syscall.SIGTERM)
	if res.ExitCode != launch.ExitFailed || res.Failure == nil || res.Failure.Rank != 1 || res.Restarts != 0 {
		t.Errorf("result %+v", res)
	}
}

func TestGraceEnds(t *testing.T) {
	_, res := stopped(t, "*.*=stubborn", 2, time.Millisecond, syscall.SIGTERM)
	if res.ExitCode != launch.ExitFailed || res.Stopped != syscall.SIGTERM || res.Failure != nil {
		t.Errorf("result %+v", res)
	}
}

func TestSecondSignalKills(t *testing.T) {
	_, res := stopped(t, "*.*=stubborn", 2, 0, syscall.SIGINT, syscall.SIGINT)
	if res.ExitCode != launch.ExitFailed || res.Stopped != syscall.SIGINT {
		t.Errorf("result %+v", res)
	}
}

// TestUSR1IsPassedOn also ends a rank that is stopped by SIGSTOP.
func TestUSR1IsPassedOn(t *testing.T) {
	j := newJob(t, "*.*=graceful:0", 2)
	ch := make(chan os.Signal, 1)
	j.spec.Signals = ch
	res := j.run(func() {
		j.await(2)
		ch <- syscall.SIGUSR1
		j.await(2) // both say that they are up again
		ch <- syscall.SIGTERM
	})
	for _, key := range []string{"0.stdout", "1.stdout"} {
		if got := j.lines[key]; !slices.Equal(got, []string{"got user defined signal 1", "got terminated"}) {
			t.Errorf("%s: %q", key, got)
		}
	}
	if res.ExitCode != 143 {
		t.Errorf("result %+v", res)
	}
}

func TestStoppedRankDiesToo(t *testing.T) {
	j := newJob(t, "*.0=wait *.1=exit:0", 2)
	j.spec.MaxRestarts = 1
	res := j.run(func() {
		events := j.await(2)
		kill(t, events[0].PID, syscall.SIGSTOP)
		kill(t, events[1].PID, syscall.SIGKILL)
	})
	if res.ExitCode != 0 || res.Restarts != 1 {
		t.Errorf("result %+v", res)
	}
}

package elastic

import (
	"os"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// BenchmarkRun is a job of two ranks that do nothing, from start to end.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		res, err := Run(b.Context(), Spec{Nodes: []Node{{Ranks: 2}}})
		if err != nil || res.ExitCode != launch.ExitOK {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkRecovery is from the SIGKILL of one of two ranks to the return of the
// system call that executes the last of the new ones.
func BenchmarkRecovery(b *testing.B) {
	b.Setenv(behaviourVariable, "*.*=wait")
	ups := make(chan int, 10)
	recovered := make(chan time.Time, 1)
	ctx := b.Context()
	signals := make(chan os.Signal, 1)
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, Spec{Nodes: []Node{{Ranks: 2}}, MaxRestarts: 1 << 20, Signals: signals,
			OnEvent:    func(_, _ int, line []byte) { ups <- pidOf(line) },
			OnRecovery: func(int, func() time.Duration) { recovered <- time.Now() },
		})
		done <- err
	}()
	pid := <-ups
	<-ups
	var total time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		syscall.Kill(pid, syscall.SIGKILL)
		total += (<-recovered).Sub(began)
		n++
		pid = <-ups
		<-ups
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(n), "ms/recovery")
	signals <- syscall.SIGTERM
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

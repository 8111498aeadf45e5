package elastic

import (
	"syscall"
	"testing"

	"ddp/runtime/launch"
)

func TestTwoRanksEnd(t *testing.T) {
	j := newJob(t, "", 2)
	if res := j.run(nil); res.ExitCode != launch.ExitOK || res.Restarts != 0 || res.Failure != nil {
		t.Errorf("result %+v", res)
	}
}

func TestKilledRankIsRestarted(t *testing.T) {
	j := newJob(t, "*.0=connected *.1=exit:0", 3)
	j.spec.MaxRestarts = 1
	var killed int
	res := j.run(func() {
		for _, e := range j.await(3) {
			if e.Rank == 1 {
				killed = e.PID
			}
		}
		kill(t, killed, syscall.SIGKILL)
	})
	if res.ExitCode != launch.ExitOK || res.Restarts != 1 {
		t.Errorf("result %+v", res)
	}
	f := res.Failure
	if f == nil || f.Rank != 1 || f.Signal != "SIGKILL" || f.Cause != "killed by SIGKILL" || f.PID != killed || f.ExitCode != 137 || f.Generation != 0 {
		t.Errorf("failure %+v", f)
	}
}

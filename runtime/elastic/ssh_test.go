package elastic

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"ddp/internal/cluster"
	"ddp/runtime/launch"
)

// overSSH is a job whose nodes are hosts behind a real sshd, one for each number
// of ranks.
func overSSH(t *testing.T, behaviour string, nodes ...int) *job {
	t.Helper()
	j := newJob(t, behaviour, nodes...)
	var hosts []string
	for i := range nodes {
		hosts = append(hosts, fmt.Sprintf("host%d", i))
		j.spec.Nodes[i].Host = hosts[i]
	}
	cluster.NewLoopback(t, hosts, nil)
	j.spec.Env = []string{behaviourVariable + "=" + behaviour, markVariable + "=" + j.mark}
	return j
}

// TestOutputOverSSH has four ranks on two hosts write as fast as they can: every
// line arrives whole, under its rank, in order.
func TestOutputOverSSH(t *testing.T) {
	const lines = 5000
	j := overSSH(t, fmt.Sprintf("*.*=flood:%d", lines), 2, 2)
	if res := j.run(nil); res.ExitCode != 0 {
		t.Fatalf("result %+v, failure %+v", res, res.Failure)
	}
	for rank := range 4 {
		got := j.lines[fmt.Sprintf("%d.stdout", rank)]
		if len(got) != lines {
			t.Errorf("rank %d: %d lines, want %d", rank, len(got), lines)
		}
		for i, line := range got {
			if line != fmt.Sprintf("rank %d line %d", rank, i) {
				t.Fatalf("rank %d: line %d is %q", rank, i, line)
			}
		}
	}
}

// TestKilledOverSSH kills a rank behind ssh, then ssh's whole connection: the
// rank's stray goes with it.
func TestKilledOverSSH(t *testing.T) {
	j := overSSH(t, "0.0=wait 1.0=wait 0.1=stray 1.1=stray 0.2=exit:0 1.2=exit:0", 1, 1)
	j.spec.MaxRestarts = 2
	res := j.run(func() {
		kill(t, j.await(2)[1].PID, syscall.SIGKILL)
		kill(t, parentOf(t, j.await(2)[1].PID), syscall.SIGKILL) // its agent
	})
	if res.ExitCode != 0 || res.Restarts != 2 {
		t.Errorf("result %+v, failure %+v", res, res.Failure)
	}
}

// TestHostWithoutTheFolder has a host that lacks the launcher's working directory.
func TestHostWithoutTheFolder(t *testing.T) {
	j := overSSH(t, "", 1)
	j.spec.Dir = "/no such folder"
	res := j.run(nil)
	if res.ExitCode != launch.ExitRendezvous || !strings.Contains(res.Failure.Cause, "/no such folder") || !strings.Contains(res.Failure.Cause, "hint: every host needs the job's files") {
		t.Errorf("result %+v, failure %+v", res, res.Failure)
	}
}

// TestSilentHost has a host that neither answers nor ends, as one does whose
// shell waits for a lock when it starts: the cause says so.
func TestSilentHost(t *testing.T) {
	l := &launcher{spec: Spec{Nodes: []Node{{Host: "slow", Ranks: 1}}}, nodes: []*nodeSlot{{}}, output: &output{}}
	if f := l.lostNode(Blame{Gen: 0, Rank: -1, Node: 0}); f.Host != "slow" || !strings.Contains(f.Cause, "nothing came from it for 1m0s (hint: ") || !strings.Contains(f.Cause, "ssh slow true") {
		t.Errorf("%+v", f)
	}
}

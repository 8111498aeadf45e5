package cluster

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

func newRig(t *testing.T, nodes int) *Rig {
	if err := Unavailable(); err != nil {
		t.Skip("no rig on this machine: ", err)
	}
	return NewRig(t, nodes, 1)
}

func run(t *testing.T, r *Rig, cmd *exec.Cmd) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := r.Start(cmd); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	return out.String(), err
}

// TestRig reaches hosts by ssh, hurts the network and heals it, and sees what is
// left behind.
func TestRig(t *testing.T) {
	r := newRig(t, 2)
	patience := "ConnectTimeout=1"
	ssh := func(host string, words ...string) (string, error) {
		return run(t, r, r.Head().Command("/", "ssh", append([]string{"-o", patience, host}, words...)...))
	}
	if out, err := ssh("n1", "hostname; echo $TMPDIR; ssh -V 2>/dev/null; sleep 1000 >/dev/null 2>&1 & touch $TMPDIR/x /dev/shm/y"); err != nil || out != "n1\n"+r.Hosts[1].Temp+"\n" {
		t.Errorf("ssh n1: %q %v", out, err)
	}
	if left := strings.Join(r.Hosts[1].Leftovers(), "\n"); !strings.Contains(left, "sleep 1000") || !strings.Contains(left, "shm/y") || !strings.Contains(left, "/x") {
		t.Errorf("leftovers of n1: %q", left)
	}
	if left := r.Hosts[2].Leftovers(); len(left) > 0 {
		t.Errorf("leftovers of n2: %q", left)
	}
	r.Network.Isolate(2)
	if out, err := ssh("n2", "true"); err == nil || !strings.Contains(out, "timed out") {
		t.Errorf("n2 is cut off, but ssh says %q %v", out, err)
	}
	r.Network.Rejoin(2)
	patience = "ConnectTimeout=20" // the kernel asks for the lost address again each second
	r.Network.SetBoth(0, 2, Link{Delay: 20 * time.Millisecond})
	began := time.Now()
	if out, err := ssh("n2", "hostname"); err != nil || out != "n2\n" {
		t.Errorf("n2 is back, but ssh says %q %v", out, err)
	}
	if took := time.Since(began); took < 200*time.Millisecond { // ten ways at least
		t.Errorf("ssh over 20 ms each way took %v", took)
	}
	r.Hosts[1].Kill()
	r.Hosts[1].Boot()
	if out, err := ssh("n1", "ls $TMPDIR /dev/shm"); err != nil || strings.Contains(out, "x\n") || strings.Contains(out, "y\n") {
		t.Errorf("n1 came back with %q %v", out, err)
	}
}

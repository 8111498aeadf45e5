package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddp/internal/cluster"
)

// clusterSteps are enough for a node to be lost, called back and taken in again.
const clusterSteps = 400

// site is a cluster of four nodes and the runs on it.
type site struct {
	*cluster.Rig
	t    *testing.T
	want event // of an undisturbed run of one rank
}

// newSite boots the nodes and trains the reference.
func newSite(t *testing.T, seed uint64) *site {
	t.Helper()
	if err := cluster.Unavailable(); err != nil {
		t.Skip("this machine cannot make hosts: ", err)
	}
	want := undisturbed(t, "--set", "cluster.ranks=1", "--set", fmt.Sprint("train.max_steps=", clusterSteps))
	return &site{cluster.NewRig(t, 4, seed), t, want}
}

// clusterRun is one run on all nodes of a site.
type clusterRun struct {
	*proc
	t    *testing.T
	site *site
	dir  string
}

// run starts a run that a rank on each node takes part in.
func (s *site) run(t *testing.T, sets ...string) *clusterRun {
	t.Helper()
	s.Network.Heal()
	dir := sshFolder(t, "n1", "n2", "n3", "n4")
	args := []string{"run", "job.toml", "--json", "--set", fmt.Sprint("train.max_steps=", clusterSteps), "--set", "cluster.min_nodes=1", "--set", "snapshot.every_steps=50"}
	p := begin(t, s.Head().Command(dir, binary, append(args, sets...)...), s.Start)
	return &clusterRun{p, t, s, dir}
}

// step waits for a step of a generation whose world has size ranks, 0 for any;
// false when the run ended first.
func (r *clusterRun) step(at, size int) bool {
	r.t.Helper()
	_, ok := r.until(func(e event) bool { return e.Event == "step" && e.Step >= at && (size == 0 || e.WorldSize == size) })
	if !ok {
		r.t.Errorf("step %d with %d ranks never came", at, size)
	}
	return ok
}

// ends wants the undisturbed result, and nothing left anywhere.
func (r *clusterRun) ends() {
	r.t.Helper()
	code := r.wait()
	done, _ := r.last("done")
	if code != 0 || done.ParamsSHA256 != r.site.want.ParamsSHA256 {
		r.t.Errorf("exit code %d, parameters %q, want 0 and %q\n%s", code, done.ParamsSHA256, r.site.want.ParamsSHA256, r.stderr.String())
	}
	if r.site.Network.Heal(); r.t.Failed() {
		r.tell()
	}
	r.nothingLeft()
}

// nothingLeft wants the hosts to be as they were before.
func (r *clusterRun) nothingLeft() {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var left []string
		for _, h := range r.site.Hosts {
			left = append(left, h.Leftovers()...)
		}
		temps, _ := filepath.Glob(filepath.Join(strings.ReplaceAll(r.dir, "*", "[*]"), "*", ".*"))
		if left = append(left, temps...); len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			return
		}
		time.Sleep(20 * time.Millisecond) // nothing tells of another host's last process
	}
}

// tell shows what the control plane decided.
func (r *clusterRun) tell() {
	logs, _ := filepath.Glob(filepath.Join(filepath.Dir(r.dir), "*", "*", "logs", "*", "control.log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		r.t.Logf("%s", text)
	}
	for _, e := range r.all {
		if e.Event != "step" && e.Event != "snapshot" && e.Event != "eval" {
			r.t.Logf("%+v", e)
		}
	}
}

// each sends a signal to processes of a host, of which there must be some.
func (r *clusterRun) each(processes []cluster.Process, s syscall.Signal) {
	r.t.Helper()
	if len(processes) == 0 {
		r.t.Error("no process to signal")
	}
	for _, p := range processes {
		kill(r.t, p.PID, s)
	}
}

// TestClusterKills kills with SIGKILL, on four nodes that only ssh and a network
// join, each rank in turn, an agent, and a node as a power failure does.
func TestClusterKills(t *testing.T) {
	s := newSite(t, 1)
	t.Run("undisturbed", func(t *testing.T) {
		s.run(t).ends()
	})
	t.Run("each rank in turn", func(t *testing.T) {
		r := s.run(t)
		for i := range 4 {
			if r.step(20+40*i, 4) {
				r.each(s.Hosts[1+i].Ranks(), syscall.SIGKILL)
			}
		}
		r.ends()
		recoveries(t, r.proc, 4, "live")
	})
	for i, name := range []string{"agent of rank 0", "agent of rank 2"} {
		t.Run(name, func(t *testing.T) {
			r := s.run(t)
			if r.step(20, 4) {
				r.each(s.Hosts[1+2*i].Agents(), syscall.SIGKILL)
			}
			r.step(21, 3)
			r.ends()
		})
	}
	for _, i := range []int{0, 3} {
		t.Run(fmt.Sprintf("node of rank %d", i), func(t *testing.T) {
			r := s.run(t)
			if r.step(20, 4) {
				s.Hosts[1+i].Kill()
			}
			r.step(21, 3)
			s.Hosts[1+i].Boot()
			r.ends()
		})
	}
}

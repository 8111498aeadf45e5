package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ddp/internal/cluster"
)

// clusterSteps are enough for a node to be lost, called back and taken in again.
const clusterSteps = 400

// clusterWant is what an undisturbed run of one rank ends with.
var clusterWant struct {
	once sync.Once
	event
}

// site is a cluster of four nodes and the runs on it.
type site struct {
	*cluster.Rig
	t    *testing.T
	want string // parameters of an undisturbed run of one rank
}

// newSite boots the nodes and trains the reference.
func newSite(t *testing.T, seed uint64) *site {
	t.Helper()
	if err := cluster.Unavailable(); err != nil {
		t.Skip("this machine cannot make hosts: ", err)
	}
	clusterWant.once.Do(func() {
		clusterWant.event = undisturbed(t, "--set", "cluster.ranks=1", "--set", fmt.Sprint("train.max_steps=", clusterSteps))
	})
	return &site{cluster.NewRig(t, 4, seed), t, clusterWant.ParamsSHA256}
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

// member waits for a node to come or go.
func (r *clusterRun) member(change, host string) bool {
	r.t.Helper()
	_, ok := r.until(func(e event) bool { return e.Event == "member" && e.Change == change && e.Host == host })
	if !ok {
		r.t.Errorf("%s never %s", host, change)
	}
	return ok
}

// idle waits for a host to be without ranks, whether or not anybody can reach it.
func (r *clusterRun) idle(h *cluster.Host) {
	r.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); len(h.Ranks()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Errorf("%s still has ranks", h.Name)
			return
		}
	}
}

// ends wants the undisturbed result, and nothing left anywhere.
func (r *clusterRun) ends() {
	r.t.Helper()
	code := r.wait()
	done, _ := r.last("done")
	if code != 0 || done.ParamsSHA256 != r.site.want {
		r.t.Errorf("exit code %d, parameters %q, want 0 and %q\n%s", code, done.ParamsSHA256, r.site.want, r.stderr.String())
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

package cli

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ddp/internal/cluster"
)

// scenario is one way to hurt a run on four nodes. It must leave the network and
// the hosts so that the run can end.
type scenario struct {
	name string
	sets []string
	hurt func(r *clusterRun)
}

// patient waits for peers for no longer than a test can.
var patient = []string{"--set", `recovery.hang_timeout="4s"`}

// scenarios are those whose run must end with the undisturbed run's bits, and
// with nothing left. nth is a node's number, 1 to 4: rank nth-1 runs there.
func scenarios() []scenario {
	list := []scenario{
		{"undisturbed", nil, func(*clusterRun) {}},
		{"each rank killed in turn", nil, killEachRank},
		{"rank stopped", patient, func(r *clusterRun) { r.each(r.site.Hosts[3].Ranks(), syscall.SIGSTOP) }},
		{"node stopped and continued", patient, stopNode},
		{"link cut and healed", patient, cutLink},
		{"two nodes lose each other", patient, func(r *clusterRun) {
			r.site.Network.SetBoth(2, 3, cluster.Link{Down: true})
			r.step(100, 0)
		}},
		{"half open", patient, func(r *clusterRun) {
			for other := range r.site.Hosts {
				r.site.Network.Set(1, other, cluster.Link{Down: true}) // it hears, but is not heard
			}
			r.step(100, 0)
		}},
		{"loss and delay", nil, func(r *clusterRun) {
			r.site.Network.SetAll(cluster.Link{Loss: 0.05, Delay: 50 * time.Millisecond})
			r.step(30, 4)
		}},
		{"halves", append(patient, "--set", "cluster.min_nodes=2"), partHalves},
	}
	for _, nth := range []int{1, 3} {
		list = append(list, scenario{fmt.Sprintf("agent of rank %d killed", nth-1), nil, func(r *clusterRun) {
			r.each(r.site.Hosts[nth].Agents(), syscall.SIGKILL)
			r.step(21, 3)
		}})
	}
	for _, nth := range []int{1, 4} {
		list = append(list, scenario{fmt.Sprintf("node of rank %d without power", nth-1), nil, func(r *clusterRun) {
			r.site.Hosts[nth].Kill()
			r.step(21, 3)
			r.site.Hosts[nth].Boot()
		}})
	}
	return list
}

func killEachRank(r *clusterRun) {
	for i := range 4 {
		if i == 0 || r.step(20+40*i, 4) {
			r.each(r.site.Hosts[1+i].Ranks(), syscall.SIGKILL)
		}
	}
}

// stopNode stops all of a node until it is given up, and lets it go on.
func stopNode(r *clusterRun) {
	frozen := r.site.Hosts[3].Processes()
	r.each(frozen, syscall.SIGSTOP)
	r.member("left", "n3")
	r.each(frozen, syscall.SIGCONT)
}

// cutLink cuts a node off until it is given up.
func cutLink(r *clusterRun) {
	r.site.Network.Isolate(3)
	r.member("left", "n3")
}

// partHalves cuts two nodes off from launcher and others: they stop by
// themselves, since nobody tells them to.
func partHalves(r *clusterRun) {
	r.site.Network.Part([]int{0, 1, 2}, []int{3, 4})
	r.step(21, 2)
	r.idle(r.site.Hosts[3])
	r.idle(r.site.Hosts[4])
}

// suffer runs a scenario from step 20 on.
func (s *site) suffer(t *testing.T, c scenario) {
	t.Helper()
	r := s.run(t, c.sets...)
	if r.step(20, 4) {
		c.hurt(r)
	}
	s.Network.Heal()
	r.ends()
}

// TestCluster hurts runs on four nodes that only ssh and a network join, each in
// one way.
func TestCluster(t *testing.T) {
	for i, c := range scenarios() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newSite(t, uint64(i)).suffer(t, c)
		})
	}
}

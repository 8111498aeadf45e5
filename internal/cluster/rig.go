package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// Rig is several hosts on one network. Host 0, "head", is where people sit: it
// has no ssh server. The others are n1, n2, ...
type Rig struct {
	*Keys
	Network *Network
	Hosts   []*Host

	path   string // PATH=...
	starts chan func()
}

// Unavailable says why this machine cannot have a Rig, nil when it can.
func Unavailable() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("network namespaces need root")
	}
	for _, tool := range []string{"ip", "nsenter", "ssh"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	p, err := openPort(0)
	if err != nil {
		return err
	}
	return p.file.Close()
}

// NewRig boots head and as many nodes, until the test ends. The seed is that of
// the network's losses.
func NewRig(t testing.TB, nodes int, seed uint64) *Rig {
	t.Helper()
	r := &Rig{Keys: NewKeys(t), Network: newNetwork(seed), starts: make(chan func())}
	go r.spawner()
	t.Cleanup(r.close)
	known := map[string]string{}
	for i := range nodes + 1 {
		h := &Host{Name: fmt.Sprintf("n%d", i), Number: i, Address: fmt.Sprintf("10.77.0.%d", i+1), rig: r}
		if i == 0 {
			h.Name = "head"
		} else {
			known[h.Name] = h.Address + ":22"
		}
		h.Temp = r.Keys.path(h.Name)
		r.Hosts = append(r.Hosts, h)
		h.Boot()
	}
	r.path = r.client(known)
	return r
}

// Head is where the launcher runs.
func (r *Rig) Head() *Host { return r.Hosts[0] }

func (r *Rig) close() {
	for _, h := range r.Hosts {
		h.Kill()
	}
	r.Network.wg.Wait()
	close(r.starts)
}

// spawner starts processes from one thread that lives as long as the rig:
// Pdeathsig fires when the thread ends that started them.
func (r *Rig) spawner() {
	runtime.LockOSThread()
	for start := range r.starts {
		start()
	}
}

func (r *Rig) spawn(cmd *exec.Cmd) error {
	done := make(chan error)
	r.starts <- func() { done <- cmd.Start() }
	return <-done
}

// Start starts a command of Host.Command.
func (r *Rig) Start(cmd *exec.Cmd) error { return r.spawn(cmd) }

package cluster

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Loopback is an ssh server on a port of 127.0.0.1 that plays any number of
// hosts. Each connection has an sshd of its own.
type Loopback struct {
	*Keys
	Refuse atomic.Int64 // connections still to be hung up on
	Served atomic.Int64 // connections that reached sshd

	l  net.Listener
	wg sync.WaitGroup
}

// NewLoopback serves hosts under these names until the test ends. Sessions have
// env; extra are lines of sshd_config; in both %DIR is the folder of the keys, and
// its folder "home" the sessions' home.
func NewLoopback(t testing.TB, hosts, env []string, extra ...string) *Loopback {
	t.Helper()
	s := &Loopback{Keys: NewKeys(t)}
	daemon := sshd(t)
	text := strings.ReplaceAll(s.server(env, extra...), "%DIR", s.Dir)
	config := s.Write("sshd_config", text, 0o600)
	var err error
	if s.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.wg.Go(func() { s.serve(daemon, config) })
	t.Cleanup(func() {
		s.l.Close()
		s.wg.Wait()
	})
	at := map[string]string{}
	for _, host := range hosts {
		at[host] = s.l.Addr().String()
	}
	name, value, _ := strings.Cut(s.client(at), "=")
	t.Setenv(name, value)
	return s
}

// Close ends the server; connections that there are go on.
func (s *Loopback) Close() { s.l.Close() }

func (s *Loopback) serve(daemon, config string) {
	for {
		conn, err := s.l.Accept()
		if err != nil {
			return
		}
		if s.Refuse.Add(-1) >= 0 {
			conn.Close()
			continue
		}
		s.Served.Add(1)
		file, err := conn.(*net.TCPConn).File()
		conn.Close()
		if err != nil {
			continue
		}
		s.wg.Go(func() { session(daemon, config, file) })
	}
}

// session is one connection's sshd.
func session(daemon, config string, conn *os.File) {
	defer conn.Close()
	cmd := exec.Command(daemon, "-i", "-f", config)
	cmd.Stdin, cmd.Stdout = conn, conn
	_ = cmd.Run() // how a connection ends is the client's to tell
}

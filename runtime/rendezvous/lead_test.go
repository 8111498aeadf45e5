package rendezvous

import (
	"net"
	"os"
	"strings"
	"testing"
)

// TestLead lets one of two nodes on this machine lead, and none elsewhere.
func TestLead(t *testing.T) {
	first, err := Lead(t.Context(), "localhost:0", Found)
	if err != nil || first == nil {
		t.Fatalf("%v, %v", first, err)
	}
	defer first.Close()
	taken := first.Addr().String()
	if host, _, _ := net.SplitHostPort(taken); !net.ParseIP(host).IsLoopback() {
		t.Errorf("localhost is served at %s", taken)
	}
	for _, c := range []struct {
		endpoint string
		how      Leadership
		failure  string // "": the node follows
	}{
		{taken, Found, ""},
		{taken, Follows, ""},
		{"192.0.2.77:1", Found, ""}, // of nobody, RFC 5737
		{taken, Leads, "address already in use"},
		{"nowhere", Found, `"nowhere" is no HOST:PORT`},
		{"no-such-host.invalid:1", Found, "find the endpoint's host"},
	} {
		l, err := Lead(t.Context(), c.endpoint, c.how)
		if l != nil || (err == nil) != (c.failure == "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%s: %v, %v", c.endpoint, l, err)
		}
	}
}

// TestLeadListensToOthers for an endpoint that is the host's own name, even if
// the name leads to a loopback address here.
func TestLeadListensToOthers(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	l, err := Lead(t.Context(), net.JoinHostPort(name, "0"), Leads)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Addr().(*net.TCPAddr).IP.IsUnspecified() {
		t.Errorf("%s is served at %v only", name, l.Addr())
	}
}

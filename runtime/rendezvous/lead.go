package rendezvous

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// Leadership says how a node learns whether it leads.
type Leadership int

const (
	Found   Leadership = iota // it does if the endpoint is its own and nobody else here has it
	Leads                     // it was told so
	Follows                   // it was told so
)

// Lead returns the socket at which a leading node receives the others, nil for a
// node that follows. The endpoint is HOST:PORT. A leader listens on all
// addresses, unless the endpoint is a loopback one.
func Lead(ctx context.Context, endpoint string, how Leadership) (net.Listener, error) {
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, fmt.Errorf("%q is no HOST:PORT", endpoint)
	}
	if how == Follows {
		return nil, nil
	}
	here, loopback, err := whose(ctx, host)
	switch {
	case how == Leads:
	case err != nil:
		return nil, fmt.Errorf("find the endpoint's host: %w", err)
	case !here:
		return nil, nil
	}
	if !loopback {
		host = ""
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if errors.Is(err, unix.EADDRINUSE) && how == Found {
		return nil, nil // another node on this machine leads
	}
	if err != nil {
		return nil, fmt.Errorf("lead at %s: %w", endpoint, err)
	}
	return l, nil
}

// whose tells whether host is this machine, and whether only this machine can
// reach it.
func whose(ctx context.Context, host string) (here, loopback bool, err error) {
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return false, false, err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, false, fmt.Errorf("list this machine's addresses: %w", err)
	}
	mine := map[string]bool{}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			mine[n.IP.String()] = true
		}
	}
	// A host's own name may lead to 127.0.1.1 in its hosts file, and elsewhere to
	// the address that others see: only what is called so is loopback.
	ip := net.ParseIP(host)
	loopback = strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
	for _, a := range addresses {
		here = here || a.IP.IsLoopback() || mine[a.IP.String()]
	}
	return here, loopback, nil
}

// WeakSecret makes a secret out of a job's name, for nodes that share no better
// one: whoever knows or guesses the name knows it.
func WeakSecret(name string) []byte {
	sum := sha256.Sum256([]byte("ddp weak secret of " + name))
	return sum[:]
}

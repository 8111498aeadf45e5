package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"ddp/runtime/store"
	"ddp/spmd"
)

// RendezvousTime is how long a rank waits for rank 0's store when its context
// has no deadline.
const RendezvousTime = 5 * time.Minute

// RendezvousError says that the store was not reached in time. It fits ExitRendezvous.
type RendezvousError struct {
	Addr  string
	After time.Duration
}

func (e *RendezvousError) Error() string {
	return fmt.Sprintf("rank 0's store at %s was not reached within %v: does rank 0 run, and does a firewall stand between?", e.Addr, e.After)
}

// Connect finds the ranks of this generation: rank 0 serves the store on the
// socket that it inherited, all ranks dial it. The returned function closes
// client and server. A world of one uses no socket at all.
func (r Rank) Connect(ctx context.Context) (spmd.Config, func() error, error) {
	config := spmd.Config{Rank: r.Rank, Size: r.WorldSize, LocalRank: r.LocalRank, LocalSize: r.LocalWorldSize, Generation: r.Generation}
	var err error
	if config.Flight, err = r.flight(); err != nil {
		return config, nil, err
	}
	if r.WorldSize == 1 {
		if r.given != nil && r.given.store != nil {
			r.given.store.Close() // an earlier generation had more ranks
		}
		return config, func() error { return nil }, nil
	}
	secret, err := r.secret()
	if err != nil {
		return config, nil, err
	}
	config.Secret = secret
	stopServer := func() error { return nil }
	if r.Rank == 0 {
		l, err := r.listener()
		if err != nil {
			return config, nil, fmt.Errorf("serve the store: %w", err)
		}
		stopServer = store.Serve(l, secret).Close
	}
	client, err := r.dial(ctx, secret)
	if err != nil {
		return config, nil, errors.Join(err, stopServer())
	}
	config.Store = client
	return config, func() error { return errors.Join(client.Close(), stopServer()) }, nil
}

// dial reaches rank 0's store.
func (r Rank) dial(ctx context.Context, secret []byte) (*store.Client, error) {
	if r.MasterAddr == "" || r.MasterPort == 0 {
		return nil, errors.New("MASTER_ADDR and MASTER_PORT are not both set: start ranks with `ddp launch`")
	}
	addr := net.JoinHostPort(r.MasterAddr, strconv.Itoa(r.MasterPort))
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, RendezvousTime, &RendezvousError{addr, RendezvousTime})
		defer cancel()
	}
	return store.Dial(ctx, addr, secret)
}

// Connect is FromEnv and Rank.Connect for spmd.Main. A process that no launcher
// started is alone. The store lives as long as the process.
func Connect(ctx context.Context) (spmd.Config, error) {
	r, launched, err := FromEnv()
	if err != nil {
		return spmd.Config{}, err
	}
	if !launched {
		return spmd.Config{Size: 1}, nil
	}
	config, _, err := r.Connect(ctx)
	return config, err
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ddp/jobs"
	"ddp/runtime/elastic"
	"ddp/runtime/seal"
)

var joinCommand = command{
	name: "join", args: "HOST:PORT --secret-file FILE [--ranks N]", summary: "make this machine a node of a job that runs elsewhere",
	details: `Joins a job whose file has cluster.listen. The job takes this machine in at the end
of a step, as soon as its ranks are ready, and goes on without it when it leaves;
the result stays the same. The secret is in the file "secret" of the run's folder;
--secret-file - reads it from stdin.

Ctrl-C or SIGTERM leaves at the end of a step, a second one at once. When the job
cannot be reached any more, join tries again for --patience.

examples:
  ddp join a:7077 --secret-file secret --ranks 2
  ssh a cat runs/big/logs/ID/secret | ddp join a:7077 --secret-file -`,
	run: runJoin,
}

func runJoin(in *invocation) error {
	ranks := in.flags.Int("ranks", 0, "`N` ranks on this machine; 0: one a pair of cores")
	file := in.flags.String("secret-file", "", "`FILE` that holds the job's secret; -: stdin")
	patience := in.flags.Duration("patience", time.Minute, "`TIME` to try to reach a job that cannot be reached")
	args, err := in.parse(1)
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(args[0]); err != nil {
		return usageError{fmt.Errorf("join: %q is no address of a job, as in host:7077", args[0])}
	}
	if *ranks < 0 {
		return usageError{fmt.Errorf("join: --ranks is %d, want 0 or more", *ranks)}
	}
	if *ranks == 0 {
		*ranks = max(1, usableCores()/2)
	}
	secret, err := in.readSecret(*file)
	if err != nil {
		return err
	}
	return in.visit(args[0], secret, elastic.Visitor{Ranks: *ranks}, *patience)
}

// visit joins, again and again while the job cannot be reached.
func (in *invocation) visit(address string, secret []byte, v elastic.Visitor, patience time.Duration) error {
	leave, stop := notifyStop()
	defer stop()
	v.Leave = leave
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		began := time.Now()
		err := elastic.Visit(context.Background(), address, secret, v)
		var lost *elastic.LostError
		if !errors.As(err, &lost) || errors.Is(err, seal.ErrSecret) {
			return err
		}
		if time.Since(began) > elastic.DefaultLease { // it was a member
			pause = 100 * time.Millisecond
		} else if patience -= pause; patience <= 0 {
			return err
		}
		in.note(fmt.Sprintf("%v; trying again", err))
		select {
		case <-time.After(pause):
		case <-leave:
			return nil
		}
	}
}

// readSecret reads a secret without the line's end.
func (in *invocation) readSecret(file string) ([]byte, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return nil, usageError{errors.New("join: the job's secret is needed: --secret-file FILE, or - for stdin (it is the file \"secret\" in the run's folder)")}
	case "-":
		text, err = io.ReadAll(io.LimitReader(in.stdin, 4<<10))
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("join: read the secret: %w", err)}
	}
	text = bytes.TrimSpace(text)
	if len(text) < seal.MinSecret {
		return nil, usageError{fmt.Errorf("join: the secret has %d characters, want at least %d", len(text), seal.MinSecret)}
	}
	return text, nil
}

// door is where nodes come in that join by themselves.
type door struct {
	guests chan elastic.Guest // nil: none can come
	l      net.Listener
	wg     sync.WaitGroup
}

// openDoor listens where the job says, with a new secret in the run's folder.
func openDoor(ctx context.Context, folder *runFolder, job *jobs.Job, warn func(string)) (*door, error) {
	d := &door{}
	if job.Cluster.Listen == "" {
		return d, nil
	}
	secret := newSecret()
	if err := os.WriteFile(filepath.Join(folder.path, secretFile), append(secret, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("write the job's secret: %w", err)
	}
	l, err := net.Listen("tcp", job.Cluster.Listen)
	if err != nil {
		return nil, usageError{fmt.Errorf("cluster.listen: %w", err)}
	}
	d.l, d.guests = l, make(chan elastic.Guest)
	d.wg.Go(func() { elastic.Receive(ctx, l, secret, d.guests, func(err error) { warn(err.Error()) }) })
	return d, nil
}

func (d *door) close() {
	if d.l != nil {
		d.l.Close()
	}
	d.wg.Wait()
}

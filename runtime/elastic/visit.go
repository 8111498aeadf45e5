package elastic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"ddp/runtime/seal"
)

// Visitor is a node that joins a job by itself.
type Visitor struct {
	Ranks int
	Place int    // wished for among the first nodes; 0: none
	Local string // our address towards the launcher; "": the system's choice

	// Command is what the ranks of this node execute, nil for what the launcher
	// says. A node with its own takes nothing from the launcher that could run
	// something else here. Role goes with it.
	Command []string
	Role    string

	// Leave: the first signal asks the job to go on without this node, the second
	// leaves at once.
	Leave <-chan os.Signal
}

// LostError says that the job's launcher could not be reached, or no longer; the
// job may go on.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// JobError says that the job ended otherwise than well.
type JobError struct {
	Code  int    // of the launcher
	Cause string // in words; "": it was stopped
}

func (e *JobError) Error() string {
	if e.Cause == "" {
		return fmt.Sprintf("the job ended with exit code %d", e.Code)
	}
	return fmt.Sprintf("the job ended with exit code %d: %s", e.Code, e.Cause)
}

// Visit joins a job: it dials the launcher, proves that it knows the secret, and
// is the job's agent on this machine until the job ends or drains it, or ctx
// ends. A LostError may be worth another try; a JobError tells that the job
// failed. The program must call AgentMain when launch.RoleVariable says so.
func Visit(ctx context.Context, address string, secret []byte, v Visitor) error {
	conn, err := v.dial(ctx, address)
	if err != nil {
		return &LostError{fmt.Errorf("reach the job: %w", err)}
	}
	sealed, err := seal.Client(ctx, conn, secret)
	if err != nil {
		return err
	}
	defer sealed.Close()
	stop := context.AfterFunc(ctx, func() { sealed.Close() })
	defer stop()
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this node: %w", err)
	}
	greeting := visit{Version: protocolVersion, Host: host, Ranks: v.Ranks, Place: v.Place}
	if err := json.NewEncoder(sealed).Encode(greeting); err != nil {
		return fmt.Errorf("greet the job: %w", err)
	}
	in := json.NewDecoder(bufio.NewReader(sealed))
	var first command
	if err := in.Decode(&first); err != nil || first.Setup == nil {
		return &LostError{fmt.Errorf("the job did not take this node in: %w", err)}
	}
	s, err := v.adapt(*first.Setup)
	if err != nil {
		return err
	}
	s.route = route{launcher: hostOf(conn.RemoteAddr()), own: hostOf(conn.LocalAddr())}
	over, err := serveAgent(s, in, sealed, v.Leave)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &LostError{err}
	case over != nil && over.Code != 0:
		return &JobError{over.Code, over.Cause}
	}
	return nil
}

func (v Visitor) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := &net.Dialer{}
	if v.Local != "" {
		addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(v.Local, "0"))
		if err != nil {
			return nil, fmt.Errorf("find this node's address: %w", err)
		}
		dialer.LocalAddr = addr
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// adapt makes the launcher's setup one for this node.
func (v Visitor) adapt(s setup) (setup, error) {
	s.Env, s.Dir = nil, nil // it was started where it is to run
	if v.Command == nil {
		return s, nil
	}
	if s.Command == nil {
		return s, errors.New("the job at this address trains by itself and takes no commands: is it `ddp run`?")
	}
	s.Command, s.Role, s.Payload = v.Command, v.Role, nil
	return s, nil
}

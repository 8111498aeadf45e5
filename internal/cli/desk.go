package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"ddp/runtime/elastic"
)

// A launcher has a desk: a socket without a file, of a name that the run's id
// makes, at which processes of the same user on the same machine ask one
// question each, as a line of JSON.

// question is what can be asked; exactly one field is set.
type question struct {
	Status bool           `json:"status,omitempty"`
	Drain  string         `json:"drain,omitempty"`  // a node's name or number
	Signal syscall.Signal `json:"signal,omitempty"` // for the launcher
	Wait   bool           `json:"wait,omitempty"`   // to be answered when the run ends
}

// answer is what comes back.
type answer struct {
	Error    string         `json:"error,omitempty"`
	Status   elastic.Status `json:"status"`
	Progress progress       `json:"progress"`
	ExitCode int            `json:"exit_code"` // of a run that ended
}

// progress is how far a run has come.
type progress struct {
	Step       int     `json:"step"`
	Loss       float64 `json:"loss"`
	TokensPerS float64 `json:"tokens_per_s"`
}

func deskAddress(id string) *net.UnixAddr { return &net.UnixAddr{Name: "@ddp-" + id, Net: "unix"} }

// desk answers until close.
type desk struct {
	listener *net.UnixListener
	requests chan elastic.Request // for elastic.Spec.Requests
	progress func() progress
	run      context.Context // ends with the run
	end      context.CancelFunc
	code     int // valid once run has ended
	wg       sync.WaitGroup
}

func openDesk(id string, progress func() progress) (*desk, error) {
	l, err := net.ListenUnix("unix", deskAddress(id))
	if err != nil {
		return nil, fmt.Errorf("open the run's socket: %w", err)
	}
	d := &desk{listener: l, requests: make(chan elastic.Request), progress: progress}
	d.run, d.end = context.WithCancel(context.Background())
	d.wg.Go(d.serve)
	return d, nil
}

// close answers those that wait for the end.
func (d *desk) close(code int) {
	d.code = code
	d.end()
	d.listener.Close()
	d.wg.Wait()
}

func (d *desk) serve() {
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			return
		}
		d.wg.Go(func() {
			defer conn.Close()
			stop := context.AfterFunc(d.run, func() { _ = conn.CloseRead() })
			defer stop()
			if sameUser(conn) != nil {
				return
			}
			var q question
			if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&q); err != nil {
				return // it went away, or is none of us
			}
			_ = json.NewEncoder(conn).Encode(d.answer(q))
		})
	}
}

func (d *desk) answer(q question) answer {
	switch {
	case q.Wait:
		<-d.run.Done()
		return answer{ExitCode: d.code, Progress: d.progress()}
	case q.Signal != 0:
		if err := syscall.Kill(os.Getpid(), q.Signal); err != nil {
			return answer{Error: err.Error()}
		}
		return answer{}
	}
	answers := make(chan answer, 1)
	request := elastic.Request{Drain: q.Drain, Status: q.Status, Answer: func(s elastic.Status, err error) {
		a := answer{Status: s, Progress: d.progress()}
		if err != nil {
			a.Error = err.Error()
		}
		answers <- a
	}}
	select {
	case d.requests <- request:
		return <-answers
	case <-d.run.Done():
		return answer{Error: "the run has just ended"}
	}
}

// sameUser refuses what other users' processes want or offer.
func sameUser(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if peer.Uid != 0 && int(peer.Uid) != os.Getuid() {
		return fmt.Errorf("the other side is user %d", peer.Uid)
	}
	return nil
}

// errNotRunning says that nobody is at a run's desk.
var errNotRunning = errors.New("the run is not running")

// ask puts a question to the launcher of a run. ctx ends the waiting.
func (f *runFolder) ask(ctx context.Context, q question) (answer, error) {
	if host, _ := os.Hostname(); host != f.info.Host && f.info.Ended == nil {
		return answer{}, fmt.Errorf("the run's launcher is on %s: ask there", f.info.Host)
	}
	conn, err := net.DialUnix("unix", nil, deskAddress(f.info.ID))
	if err != nil {
		return answer{}, errNotRunning
	}
	defer conn.Close()
	if err := sameUser(conn); err != nil {
		return answer{}, fmt.Errorf("ask the run's launcher: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var a answer
	err = json.NewEncoder(conn).Encode(q)
	if err == nil {
		err = json.NewDecoder(conn).Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return a, context.Cause(ctx)
	case err != nil:
		return a, fmt.Errorf("the run's launcher has died: %w", err)
	case a.Error != "":
		return a, errors.New(a.Error)
	}
	return a, nil
}

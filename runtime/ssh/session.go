package ssh

import (
	"context"
	"errors"
	"sync"
	"time"

	"ddp/runtime/launch"
)

const (
	// maxStarting is how many sessions of this process may be on their way to
	// their program at once, as a person's machine can bear.
	maxStarting = 64
	// tries is how often a host is tried that turns us away for the moment.
	tries = 3
	// firstPause is the time before the second try; it doubles.
	firstPause = 500 * time.Millisecond
)

var starting = make(chan struct{}, maxStarting)

// Session is this program running on another host: Write reaches its stdin, its
// lines come to Emit. Set the fields, then call Run; all else may be called
// concurrently with it.
type Session struct {
	Host    string
	Role    string // of the program there: launch.RoleVariable
	MaxLine int    // bytes of a line; longer ones come in pieces
	Emit    func(line []byte)
	Note    func(text string) // tells the user; nil: nobody

	ctx    context.Context
	cancel context.CancelFunc
	here   chan struct{} // closed when the program is there
	ended  chan struct{} // closed when nothing will come any more

	mu     sync.Mutex
	proc   *launch.Process // of the program, once it is there
	system string          // of a host that misses the program
	why    string
}

// NewSession returns a session with host that has not begun.
func NewSession(host string) *Session {
	s := &Session{Host: host, here: make(chan struct{}), ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Run runs the program there and returns when that has ended or cannot be.
func (s *Session) Run() {
	defer close(s.ended)
	defer s.cancel()
	p, err := Self()
	if err != nil {
		s.why = err.Error()
		return
	}
	copied := false
	for try, pause := 1, firstPause; ; try, pause = try+1, 2*pause {
		said, exit, err := s.attempt(p)
		switch {
		case err != nil:
			s.why = err.Error()
			return
		case s.ctx.Err() != nil || s.isHere():
			s.why = Explain(s.Host, exit, said)
			return
		case s.system != "" && copied:
			s.why = "the program was copied there and cannot be found: is sha256sum installed?"
			return
		case s.system != "":
			copied = true
			if err := s.copy(p); err != nil {
				s.why = err.Error()
				return
			}
		case try < tries && Passing(exit, said) && s.rest(pause):
		default:
			s.why = Explain(s.Host, exit, said)
			return
		}
	}
}

func (s *Session) copy(p Program) error {
	if s.Note != nil {
		s.Note("copying this program to " + s.Host)
	}
	return p.Copy(s.ctx, s.Host, s.system)
}

// rest waits; false when the session is cut meanwhile.
func (s *Session) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// attempt runs ssh once, to its end.
func (s *Session) attempt(p Program) (said []string, exit launch.Exit, err error) {
	select {
	case starting <- struct{}{}:
	case <-s.ctx.Done():
		return nil, exit, nil
	}
	var once sync.Once
	underWay := func() { once.Do(func() { <-starting }) }
	defer underWay()
	c, err := p.Command(s.Host, s.Role)
	if err != nil {
		return nil, exit, err
	}
	s.system = ""
	errs, known := &lastLines{}, make(chan struct{})
	c.Control = true
	c.Outputs = []launch.Output{
		{FD: 1, MaxLine: s.MaxLine, Emit: func(line []byte, _ bool) {
			<-known
			s.take(line, underWay)
		}},
		{FD: 2, MaxLine: 4 << 10, Emit: func(line []byte, _ bool) { errs.add(string(line)) }},
	}
	proc, err := launch.Start(c)
	if err != nil {
		return nil, exit, err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	close(known)
	stop := context.AfterFunc(s.ctx, proc.Kill)
	defer stop()
	s.await(proc)
	return errs.list(), proc.Exit(), nil
}

// await returns when ssh and its output have ended.
func (s *Session) await(proc *launch.Process) {
	<-proc.Ended()
	drained := time.NewTimer(time.Second) // a connection that ssh shares may hold them open
	defer drained.Stop()
	select {
	case <-proc.Drained():
	case <-drained.C:
		proc.GiveUpOutput()
		<-proc.Drained()
	}
	if !s.isHere() {
		proc.Control.Close()
	}
}

// take gets a line from the host.
func (s *Session) take(line []byte, underWay func()) {
	if s.isHere() {
		s.Emit(line)
		return
	}
	switch a, system := Answered(string(line)); a {
	case Here:
		underWay()
		close(s.here)
	case Missing:
		s.system = system
	}
}

func (s *Session) isHere() bool {
	select {
	case <-s.here:
		return true
	default:
		return false
	}
}

// errEnded is for what can't be written any more.
var errEnded = errors.New("the session has ended")

// Write writes to the program, waiting until it is there.
func (s *Session) Write(p []byte) (int, error) {
	select {
	case <-s.here:
		return s.process().Control.Write(p)
	case <-s.ctx.Done():
		return 0, errEnded
	}
}

func (s *Session) process() *launch.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Close ends the program's stdin, and the session when there is no program yet.
func (s *Session) Close() error {
	if s.isHere() {
		return s.process().Control.Close()
	}
	s.cancel()
	return nil
}

// Cut ends the session at once.
func (s *Session) Cut() { s.cancel() }

// Ended is closed when nothing will come any more.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Why is why the session ended, in words. Call it after Ended is closed.
func (s *Session) Why() string { return s.why }

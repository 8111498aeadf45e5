package elastic

import (
	"fmt"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ddp/runtime/launch"
	"ddp/spmd"
)

const (
	lifeTick = time.Second
	// silentTicks is for how long a rank may show no sign of life. Counted in our
	// own ticks, so that a machine that stood still does not count.
	silentTicks = 10
	// dumpTime is how long a hung rank has to write what it does.
	dumpTime = time.Second
	// outputTime is how long the end of a rank waits for its last words, where
	// nothing else does.
	outputTime = 100 * time.Millisecond
)

// member is the process of one rank.
type member struct {
	crew      *crew
	local     int
	errorFile string
	mark      string // carried by the process and by all that it starts
	proc      *launch.Process
	flight    *os.File      // the process's flight recorder
	gone      chan struct{} // closed when the process, what it started, and its output have ended

	gen, rank int  // guarded by crew.mu
	ended     bool // guarded by crew.mu

	panic    atomic.Pointer[string] // first line of a Go program's crash
	hung     atomic.Pointer[string] // why it was killed by us
	hangOnce sync.Once
	ready    atomic.Bool
	early    tail // what it said before it had its place

	signs lifeSigns
}

// lifeSigns is what the beats of a rank tell.
type lifeSigns struct {
	mu       sync.Mutex
	beat     launch.Beat
	silent   int // ticks since the last beat
	standing int // ticks since the last progress
}

// start starts the process. crew.mu is held.
func (m *member) start() error {
	a := m.crew.agent
	m.gone = make(chan struct{})
	place := a.environmentPlace(m.crew.order, m.local)
	place.ErrorFile = m.errorFile
	c := launch.Command{Path: a.path, Args: a.args, Env: a.environment(place, m.mark), Dir: string(a.setup.Dir),
		Inherit: map[int]*os.File{}, Secrets: map[int][]byte{}, Channel: place.ChannelFD != 0}
	if place.SecretFD != 0 {
		c.Secrets[place.SecretFD] = m.crew.order.Secret
	}
	if place.StoreFD != 0 {
		c.Inherit[place.StoreFD] = a.socket
	}
	if place.PayloadFD != 0 {
		// Opened anew, so that each rank reads from the start.
		payload, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", a.payload.Fd()))
		if err != nil {
			return fmt.Errorf("open payload: %w", err)
		}
		defer payload.Close()
		c.Inherit[place.PayloadFD] = payload
	}
	c.Outputs = []launch.Output{
		{FD: 1, MaxLine: maxLine, Emit: m.line("stdout")},
		{FD: 2, MaxLine: maxLine, Emit: m.line("stderr")},
		{FD: launch.EventsFD, MaxLine: maxEvent, Emit: m.events()},
	}
	var err error
	if m.flight, err = launch.FlightFile(); err != nil {
		return err
	}
	c.Inherit[launch.FlightFD] = m.flight
	if m.proc, err = launch.Start(c); err != nil {
		m.flight.Close()
	}
	return err
}

// where is the member's place now, if it has one yet.
func (m *member) where() (gen, rank int, placed bool) {
	m.crew.mu.Lock()
	defer m.crew.mu.Unlock()
	return m.gen, m.rank, !m.crew.order.Warm
}

// line passes a rank's output on, and looks out for a Go program's crash.
func (m *member) line(stream string) launch.LineFunc {
	return func(line []byte, whole bool) {
		if stream == "stderr" && crash.Match(line) {
			text := string(line)
			m.panic.CompareAndSwap(nil, &text)
		}
		gen, rank, placed := m.where()
		if !placed {
			m.saidEarly(line)
			return
		}
		m.crew.agent.emit(report{Line: &lineReport{gen, rank, stream, line, !whole}})
	}
}

// saidEarly keeps what no rank of the world has said.
func (m *member) saidEarly(line []byte) {
	m.crew.mu.Lock()
	defer m.crew.mu.Unlock()
	m.early.add(string(line))
}

// crash is how Go's runtime begins its report: of a panic, of its own failure,
// or of a signal.
var crash = regexp.MustCompile(`^(panic|fatal error|SIG[A-Z0-9]+): `)

// events passes whole events on; what no newline ends is half an event.
func (m *member) events() launch.LineFunc {
	skip := false
	return func(line []byte, whole bool) {
		if whole && !skip {
			gen, rank, _ := m.where()
			m.crew.agent.emit(report{Line: &lineReport{gen, rank, eventStream, line, false}})
		}
		skip = !whole // the rest of an overlong one
	}
}

// watch reports the process's end and clears away what it left.
func (m *member) watch() {
	defer m.crew.leave()
	defer close(m.gone)
	defer m.flight.Close()
	select {
	case <-m.proc.Ended():
	case <-m.crew.hopeless:
		m.closeOutput()
		return
	}
	if m.proc.Channel != nil {
		waitUpTo(m.proc.Drained(), outputTime)
		m.proc.Channel.Close()
	}
	m.report()
	if m.proc.Channel != nil {
		// The others live on, so that the crew's own sweep may be far.
		if _, err := m.crew.agent.sweep(m.mark, m.crew.agent.patience); err != nil {
			m.crew.agent.emit(report{Broken: &brokenReport{err.Error()}})
		}
	}
	m.closeOutput()
	os.Remove(m.errorFile)
}

// closeOutput waits for the rest of the output, but not for ever.
func (m *member) closeOutput() {
	if !waitUpTo(m.proc.Drained(), drainTime) {
		m.proc.GiveUpOutput()
		<-m.proc.Drained()
	}
}

// report tells how the process ended.
func (m *member) report() {
	exit := m.proc.Exit()
	e := &exitedReport{PID: m.proc.PID(), Exit: exit}
	text, err := launch.ReadErrorFile(m.errorFile)
	if err != nil {
		text = []byte(err.Error())
	}
	e.ErrorFile = text
	if exit.Code == launch.ExitUsage && text == nil {
		// Go's exit code of a panic is 2 too; its first line tells them apart.
		waitUpTo(m.proc.Drained(), drainTime)
	}
	if m.crew.agent.setup.Command != nil && exit.Code != 0 {
		waitUpTo(m.proc.Drained(), outputTime) // its last lines may say why
	}
	if line := m.panic.Load(); line != nil {
		e.Panic = *line
	}
	if why := m.hung.Load(); why != nil {
		e.Hung = *why
	}
	if exit.Signal == syscall.SIGKILL {
		kills, known := launch.OutOfMemoryKills()
		e.OutOfMemory = known && kills > m.crew.oom
	}
	if exit.Status() != 0 {
		e.Flight, e.LastOperation = m.readFlight()
	}
	m.crew.mu.Lock()
	m.ended = true
	e.Gen, e.Rank = m.gen, m.rank
	unplaced := m.crew.order.Warm
	m.crew.mu.Unlock()
	if unplaced {
		m.crew.agent.emit(report{Broken: &brokenReport{m.earlyEnd(e)}})
		return
	}
	m.crew.agent.emit(report{Exited: e})
}

// readFlight returns what the rank's last collectives were, and the last one.
func (m *member) readFlight() (text []byte, last string) {
	r, err := spmd.ReadFlight(m.flight, time.Now())
	if err != nil {
		return nil, err.Error()
	}
	return []byte(r.Text), r.Last
}

// earlyEnd puts the end of a rank in words that had no place yet.
func (m *member) earlyEnd(e *exitedReport) string {
	waitUpTo(m.proc.Drained(), drainTime)
	m.crew.mu.Lock()
	defer m.crew.mu.Unlock()
	why := "a rank ended before it had its place: " + cause(e, launch.ParseErrorFile(e.ErrorFile))
	if said := m.early.lines(); len(said) > 0 {
		why += ": " + said[len(said)-1]
	}
	return why
}

// listen takes what the rank says over its channel until it ends.
func (m *member) listen() {
	for {
		var s launch.Status
		file, err := m.proc.Channel.Receive(&s)
		if file != nil {
			file.Close() // ranks have none to give
		}
		if err != nil {
			return
		}
		_, rank, _ := m.where()
		switch {
		case s.Ready:
			m.ready.Store(true)
			m.crew.readyWhenAll()
		case s.Beat != nil:
			m.signs.note(*s.Beat)
		case s.Paused != nil:
			m.crew.agent.emit(report{Paused: &pausedReport{s.Paused.Generation, rank}})
		case s.Broken != nil:
			b := s.Broken
			m.crew.agent.emit(report{Stranded: &strandedReport{Gen: b.Generation, Rank: rank, Peer: b.Peer, Late: b.Late, Apart: b.Apart, Cause: b.Cause, Step: b.Step, PID: m.proc.PID()}})
		}
	}
}

// note takes a beat.
func (l *lifeSigns) note(b launch.Beat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = 0
	if b.Progress != l.beat.Progress || b.Idle {
		l.standing = 0
	}
	l.beat = b
}

// restart forgets for how long nothing was completed: a new generation has begun.
func (l *lifeSigns) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standing = 0
}

// lifeless counts a tick and says why the rank is to be replaced; "" if it is not.
func (m *member) lifeless(patience time.Duration) string {
	if !m.ready.Load() {
		return "" // it has not begun
	}
	l := &m.signs
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent++
	l.standing++
	switch {
	case l.silent > silentTicks:
		return fmt.Sprintf("it hangs: no sign of life for %v (stopped, or frozen?)", silentTicks*lifeTick)
	case patience > 0 && time.Duration(l.standing)*lifeTick > patience+patience/2:
		return fmt.Sprintf("it hangs: it has completed nothing for %v (recovery.hang_timeout is %v)", time.Duration(l.standing)*lifeTick, patience)
	}
	return ""
}

// hang ends the process, after it has written what its goroutines do.
func (m *member) hang(why string) {
	m.hangOnce.Do(func() {
		m.hung.Store(&why)
		_ = m.proc.Signal(syscall.SIGQUIT) // Go's runtime writes all stacks and exits
		time.AfterFunc(dumpTime, m.proc.Kill)
	})
}

// readyWhenAll tells once every member waits for its place.
func (c *crew) readyWhenAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.members {
		if m == nil || !m.ready.Load() {
			return
		}
	}
	if c.order.Warm {
		c.agent.emit(report{Ready: &readyReport{}})
	}
}

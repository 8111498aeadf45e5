package observe

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Sink shows a run as it happens. Its methods may be called from any goroutine.
type Sink interface {
	// Emit shows an event.
	Emit(at time.Time, e Event)
	// Line shows one line of a rank's own output; stream is "stdout" or "stderr".
	Line(rank int, stream string, line []byte)
	// Close ends the display.
	Close()
}

// jsonSink writes events to one stream and ranks' lines to another.
type jsonSink struct {
	mu             sync.Mutex
	events, output io.Writer
}

// NewJSON writes each event as a line to stdout and nothing else; what ranks
// print goes to stderr.
func NewJSON(stdout, stderr io.Writer) Sink { return &jsonSink{events: stdout, output: stderr} }

func (s *jsonSink) Emit(at time.Time, e Event) {
	line, err := Marshal(at, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		fmt.Fprintf(s.output, "ddp: %v\n", err)
		return
	}
	// A reader that has gone away must not stop the training.
	_, _ = s.events.Write(append(line, '\n'))
}

func (s *jsonSink) Line(rank int, _ string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.output, "[rank %d] %s\n", rank, line)
}

func (s *jsonSink) Close() {}

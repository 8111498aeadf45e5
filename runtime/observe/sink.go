package observe

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Sink shows a run as it happens. Its methods may be called from any goroutine;
// what each shows stays in one piece.
type Sink interface {
	// Emit shows an event that happened at that time.
	Emit(at time.Time, e Event)
	// Line shows one line of a rank's own output, without its newline; stream is
	// "stdout" or "stderr". line is the caller's again when Line returns.
	Line(rank int, stream string, line []byte)
	// Note shows what the program itself has to say.
	Note(msg string)
	// Close ends the display.
	Close()
}

// jsonSink writes events to one stream and ranks' lines to another. Readers
// that have gone away must not stop the training: no write's error counts.
type jsonSink struct {
	mu             sync.Mutex
	events, output io.Writer
}

// NewJSON writes each event as a line to stdout and nothing else; what ranks
// print and notes go to stderr.
func NewJSON(stdout, stderr io.Writer) Sink { return &jsonSink{events: stdout, output: stderr} }

func (s *jsonSink) Emit(at time.Time, e Event) {
	line, err := Marshal(at, e)
	if err != nil {
		s.Note(err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.events.Write(append(line, '\n'))
}

func (s *jsonSink) Line(rank int, _ string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.output, "[rank %d] %s\n", rank, line)
}

func (s *jsonSink) Note(msg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.output, "ddp: %s\n", msg)
}

func (s *jsonSink) Close() {}

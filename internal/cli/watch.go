package cli

import (
	"sync"
	"time"

	"ddp/runtime/elastic"
	"ddp/runtime/observe"
)

// watch passes what ranks and agents report on to a sink and adds what only the
// launcher can know: how much a failure cost. Its methods may be called from
// any goroutine.
type watch struct {
	sink observe.Sink

	mu         sync.Mutex
	lastStep   int       // newest step that any generation completed
	failedAt   time.Time // of the failure that is not yet recovered from
	generation int       // of the newest step seen
}

func newWatch(sink observe.Sink) *watch { return &watch{sink: sink} }

// line passes on one line of a rank's output.
func (w *watch) line(_, rank int, stream string, line []byte) { w.sink.Line(rank, stream, line) }

// event passes on one event line of a rank.
func (w *watch) event(generation, rank int, line []byte) {
	at, e, err := observe.Parse(line)
	if err != nil {
		w.sink.Line(rank, "stderr", append([]byte("ddp: unreadable event: "), line...))
		return
	}
	if step, ok := e.(observe.Step); ok {
		w.stepped(at, step)
	}
	w.sink.Emit(at, e)
}

// stepped reports the recovery that the first step of a new generation ends.
func (w *watch) stepped(at time.Time, s observe.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.failedAt.IsZero() && s.Generation > w.generation {
		w.sink.Emit(at, observe.Recovered{Mode: "restart", Generation: s.Generation, WorldSize: s.WorldSize, Step: s.Step,
			LostSteps: max(0, w.lastStep-(s.Step-1)), DownMS: float64(at.Sub(w.failedAt)) / float64(time.Millisecond)})
		w.failedAt = time.Time{}
	}
	w.generation = s.Generation
	w.lastStep = max(w.lastStep, s.Step)
}

// failure reports a rank's death.
func (w *watch) failure(f elastic.Failure) {
	w.mu.Lock()
	if w.failedAt.IsZero() {
		w.failedAt = f.Time
	}
	w.mu.Unlock()
	w.sink.Emit(f.Time, observe.Failure{Rank: f.Rank, Host: f.Host, PID: f.PID, Cause: f.Cause, ExitCode: f.ExitCode,
		Signal: f.Signal, ErrorFile: f.ErrorFile, Generation: f.Generation, LogTail: f.LogTail})
}

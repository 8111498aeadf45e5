package cli

import (
	"math"
	"sync"
	"time"

	"ddp/model/train"
	"ddp/runtime/elastic"
	"ddp/runtime/observe"
)

// watch passes what ranks and agents report on to a sink and adds what only the
// launcher can know: how much a failure cost. Its methods may be called from
// any goroutine.
type watch struct {
	sink observe.Sink

	mu       sync.Mutex
	lastStep int                // newest step that any generation completed
	last     progress           // what it said
	lastEval int                // and evaluated
	failedAt time.Time          // of the failure that is not yet recovered from
	entered  *observe.Regrouped // how the generation at hand began; nil: it is the first
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
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fresh(at, e) {
		w.sink.Emit(at, e)
	}
}

// fresh notes an event and tells whether it is news. Ranks that go on after a
// failure repeat what the one that told before may not have told.
func (w *watch) fresh(at time.Time, e observe.Event) bool {
	switch e := e.(type) {
	case observe.Regrouped:
		w.entered = &e
		if e.From != string(train.FromPeers) {
			w.lastEval = min(w.lastEval, e.Step)
		}
	case observe.Step:
		again := w.live() && e.Step <= w.lastStep
		if !again {
			w.recovered(at, e.Step)
			w.lastStep = e.Step
			w.last = progress{e.Step, finite(e.Loss), finite(e.TokensPerS)}
		}
		return !again
	case observe.Eval:
		again := w.live() && e.Step <= w.lastEval
		w.lastEval = max(w.lastEval, e.Step)
		return !again
	case observe.Done:
		w.recovered(at, e.Step+1) // it failed when no step was left
	}
	return true
}

// progress is how far the run has come.
func (w *watch) progress() progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// finite makes a number one that JSON has.
func finite(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

// live tells whether the generation at hand carries on what ranks still held.
func (w *watch) live() bool { return w.entered != nil && w.entered.From == string(train.FromPeers) }

// recovered reports the recovery that the first step of a new generation ends.
func (w *watch) recovered(at time.Time, step int) {
	if w.failedAt.IsZero() || w.entered == nil {
		return
	}
	mode := "restart"
	if w.live() {
		mode = "live"
	}
	w.sink.Emit(at, observe.Recovered{Mode: mode, Generation: w.entered.Generation, WorldSize: w.entered.WorldSize, Step: step,
		LostSteps: max(0, w.lastStep-(step-1)), DownMS: float64(at.Sub(w.failedAt)) / float64(time.Millisecond)})
	w.failedAt = time.Time{}
}

// failure reports a rank's death.
func (w *watch) failure(f elastic.Failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failedAt.IsZero() {
		w.failedAt = f.Time
		w.entered = nil // until the next generation has its state
	}
	w.sink.Emit(f.Time, observe.Failure{Rank: f.Rank, Host: f.Host, PID: f.PID, Cause: f.Cause, ExitCode: f.ExitCode,
		Signal: f.Signal, ErrorFile: f.ErrorFile, Generation: f.Generation,
		LastOperation: f.LastOperation, FlightFile: f.FlightFile, LogTail: f.LogTail})
}

// member reports a node that came or went.
func (w *watch) member(m elastic.Member) {
	change := "left"
	if m.Came {
		change = "joined"
	}
	w.sink.Emit(time.Now(), observe.Member{Change: change, Host: m.Host, WorldSize: m.WorldSize, Reason: m.Reason})
}

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ddp/model/compute/cpu"
	"ddp/model/compute/timed"
)

// keepSpans writes what a rank measured where the launcher looks for it.
func (r *rank) keepSpans(dir string) error {
	text, err := json.Marshal(r.spans.List())
	if err != nil {
		return fmt.Errorf("encode the spans: %w", err)
	}
	if err := os.WriteFile(spansFile(dir, r.place.Rank), text, 0o644); err != nil {
		return fmt.Errorf("keep the spans: %w", err)
	}
	return nil
}

func spansFile(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("rank-%d.spans.json", rank))
}

// readSpans reads every rank's.
func readSpans(dir string, ranks int) ([][]timed.Span, error) {
	all := make([][]timed.Span, ranks)
	for rank := range all {
		text, err := os.ReadFile(spansFile(dir, rank))
		if err == nil {
			err = json.Unmarshal(text, &all[rank])
		}
		if err != nil {
			return nil, fmt.Errorf("read rank %d's spans: %w", rank, err)
		}
	}
	return all, nil
}

// counted leaves out what began before the first steps, which don't count, had
// ended, and what came after the last one.
func counted(spans []timed.Span, uncounted int) []timed.Span {
	first, end := len(spans), time.Time{}
	for i, s := range spans {
		if s.Name != timed.Step {
			continue
		}
		if uncounted == 0 {
			first = i
		}
		uncounted--
		end = s.Began.Add(s.Took)
	}
	for first > 0 && first < len(spans) && spans[first-1].Name == timed.WaitForData {
		first-- // the wait for this step's data came just before it
	}
	last := first
	for last < len(spans) && spans[last].Began.Before(end) {
		last++
	}
	return spans[first:last]
}

// partResult is one part of a step, the mean over ranks and steps.
type partResult struct {
	Name   string  `json:"name"`
	Calls  float64 `json:"calls"` // a step and rank
	MS     float64 `json:"ms"`
	Share  float64 `json:"share"` // of the step and its wait for data
	GFLOPS float64 `json:"gflops,omitempty"`
	GBs    float64 `json:"gb_per_s,omitempty"`
	OfPeak float64 `json:"of_peak,omitempty"` // of the rank's cores' products, or of its threads' copying
}

// peaks is what the threads of a rank can do at most.
type peaks struct{ flops, bytes float64 } // a second

// stepParts makes the table of counted spans.
func stepParts(all [][]timed.Span, p peaks) []partResult {
	var parts []timed.Part
	whole, steps := time.Duration(0), 0
	rest := timed.Part{Name: "all else"}
	for _, part := range timed.Parts(slices.Concat(all...)) {
		switch part.Name {
		case timed.Step:
			steps, rest.Calls = part.Calls, part.Calls
			whole += part.Took
			rest.Took += part.Took
			continue
		case timed.WaitForData:
			whole += part.Took
		default:
			rest.Took -= part.Took
		}
		parts = append(parts, part)
	}
	var out []partResult
	for _, part := range append(parts, rest) {
		seconds := part.Took.Seconds()
		r := partResult{Name: part.Name, Calls: float64(part.Calls) / float64(steps), MS: 1e3 * seconds / float64(steps),
			Share: seconds / whole.Seconds(), GFLOPS: part.FLOPs / seconds / 1e9, GBs: part.Bytes / seconds / 1e9}
		r.OfPeak = max(part.FLOPs/seconds/p.flops, part.Bytes/seconds/p.bytes)
		out = append(out, r)
	}
	return out
}

// measurePeaks runs products from registers, and copies 256 MB, on as many threads as a rank has.
func measurePeaks(isa string, threads int) (peaks, error) {
	b, err := cpu.New(cpu.Options{ISA: isa, Threads: threads})
	if err != nil {
		return peaks{}, err
	}
	defer b.Close()
	const values = 32 << 20
	from, to := b.Alloc(values), b.Alloc(values)
	var flops, bytes []float64
	for range 5 {
		flops = append(flops, float64(threads)*cpu.PeakFLOPS(isa))
		began := time.Now()
		b.Copy(to, from)
		bytes = append(bytes, 8*values/time.Since(began).Seconds())
	}
	return peaks{medianOf(flops), slices.Max(bytes)}, nil
}

// showParts prints the table.
func (in *invocation) showParts(parts []partResult, p peaks) {
	fmt.Fprintf(in.stdout, "\n%-26s %8s %10s %7s %9s %8s %8s\n", "part of a step", "calls", "ms", "share", "GFLOP/s", "GB/s", "of peak")
	number := func(x float64, format string) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf(format, x)
	}
	for _, r := range parts {
		fmt.Fprintf(in.stdout, "%-26s %8.1f %10.3f %6.1f%% %9s %8s %8s\n", r.Name, r.Calls, r.MS, 100*r.Share,
			number(r.GFLOPS, "%.1f"), number(r.GBs, "%.1f"), number(100*r.OfPeak, "%.0f%%"))
	}
	fmt.Fprintf(in.stdout, "peaks of a rank's threads: %.1f GFLOP/s from registers, %.1f GB/s copying\n", p.flops/1e9, p.bytes/1e9)
}

// traceEvent is one of the Trace Event Format, which Perfetto and Chrome open.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	PID   int            `json:"pid"` // the rank
	TID   int            `json:"tid"` // 0: steps, 1: their parts
	TS    float64        `json:"ts"`  // microseconds
	Dur   float64        `json:"dur,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
}

// writeTrace writes all spans of all ranks.
func writeTrace(w io.Writer, all [][]timed.Span) error {
	var first time.Time
	for _, spans := range all {
		if len(spans) > 0 && (first.IsZero() || spans[0].Began.Before(first)) {
			first = spans[0].Began
		}
	}
	events := []traceEvent{}
	for rank, spans := range all {
		events = append(events, traceEvent{Name: "process_name", Phase: "M", PID: rank, Args: map[string]any{"name": fmt.Sprintf("rank %d", rank)}})
		for _, s := range spans {
			e := traceEvent{Name: s.Name, Phase: "X", PID: rank, TID: 1,
				TS: float64(s.Began.Sub(first).Nanoseconds()) / 1e3, Dur: float64(s.Took.Nanoseconds()) / 1e3}
			if s.Name == timed.Step {
				e.TID = 0
			}
			if s.FLOPs > 0 {
				e.Args = map[string]any{"GFLOP/s": s.FLOPs / s.Took.Seconds() / 1e9}
			}
			events = append(events, e)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ms"})
}

// saveTrace writes the trace into a file, whole or not at all.
func saveTrace(path string, all [][]timed.Span) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".trace-*")
	if err == nil {
		defer os.Remove(f.Name())
		if err = writeTrace(f, all); err == nil {
			err = f.Chmod(0o644)
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}

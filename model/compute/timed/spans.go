// Package timed tells where the time of a training step goes: Spans collects
// what takes how long, New wraps a back end so that each of its operations is one.
package timed

import (
	"slices"
	"sync"
	"time"
)

// Names of spans that are no operation of a back end.
const (
	Step         = "step"           // a whole one, with all others in it but WaitForData
	WaitForData  = "wait for data"  // before the step
	WaitForPeers = "wait for peers" // for what of the all-reduce the backward pass does not hide
)

// Span is one thing that took time.
type Span struct {
	Name  string        `json:"name"`
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took"` // nanoseconds
	FLOPs float64       `json:"flops,omitempty"`
	Bytes float64       `json:"bytes,omitempty"` // read and written, if each value is moved once
}

// Spans collects spans. Its methods may be called concurrently; a nil Spans
// collects nothing.
type Spans struct {
	mu   sync.Mutex
	list []Span
}

// Begin starts a span; the function that it returns ends it.
func (s *Spans) Begin(name string) (end func()) { return s.begin(Span{Name: name}) }

func (s *Spans) begin(span Span) func() {
	if s == nil {
		return func() {}
	}
	span.Began = time.Now()
	return func() {
		span.Took = time.Since(span.Began)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, span)
	}
}

// List returns the spans that have ended, in the order of their beginnings.
func (s *Spans) List() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.list)
	slices.SortStableFunc(list, func(a, b Span) int { return a.Began.Compare(b.Began) })
	return list
}

// Part is all spans of one name together.
type Part struct {
	Name  string
	Calls int
	Took  time.Duration
	FLOPs float64
	Bytes float64
}

// Parts adds spans up by their names; those that took longest come first.
func Parts(spans []Span) []Part {
	at := map[string]int{}
	var parts []Part
	for _, s := range spans {
		i, known := at[s.Name]
		if !known {
			i = len(parts)
			at[s.Name] = i
			parts = append(parts, Part{Name: s.Name})
		}
		p := &parts[i]
		p.Calls++
		p.Took += s.Took
		p.FLOPs += s.FLOPs
		p.Bytes += s.Bytes
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return int(b.Took - a.Took) })
	return parts
}

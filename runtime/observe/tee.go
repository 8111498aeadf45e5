package observe

import (
	"io"
	"time"
)

// tee shows the same run in several ways.
type tee []Sink

// NewTee passes everything on to each of the sinks, in their order.
func NewTee(sinks ...Sink) Sink { return tee(sinks) }

func (t tee) Emit(at time.Time, e Event) {
	for _, s := range t {
		s.Emit(at, e)
	}
}

func (t tee) Line(rank int, stream string, line []byte) {
	for _, s := range t {
		s.Line(rank, stream, line)
	}
}

func (t tee) Note(msg string) {
	for _, s := range t {
		s.Note(msg)
	}
}

func (t tee) Close() {
	for _, s := range t {
		s.Close()
	}
}

// closing closes what a sink writes to.
type closing struct {
	Sink
	to io.Closer
}

// NewClosing is sink, whose Close also closes to. Errors of a display don't count.
func NewClosing(sink Sink, to io.Closer) Sink { return closing{sink, to} }

func (c closing) Close() {
	c.Sink.Close()
	_ = c.to.Close()
}

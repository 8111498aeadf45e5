package observe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// timeFormat is RFC 3339 with all nine digits of a nanosecond.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// header is what every line begins with.
type header struct {
	Event string `json:"event"`
	Time  string `json:"time"`
}

// Marshal is the event as one JSON object without newline. It fails when a
// number is not finite: JSON has no word for it, and no event should hold one.
func Marshal(at time.Time, e Event) ([]byte, error) {
	head, err := json.Marshal(header{e.Kind(), at.UTC().Format(timeFormat)})
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Kind(), err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.Kind(), err)
	}
	// {"event":...,"time":...} and {"a":...} become one object.
	return append(append(head[:len(head)-1], ','), body[1:]...), nil
}

// decoders read the body of each kind.
var decoders = map[string]func(line []byte) (Event, error){
	"rank_up": decode[RankUp], "step": decode[Step], "eval": decode[Eval], "snapshot": decode[Snapshot],
	"failure": decode[Failure], "recovered": decode[Recovered], "member": decode[Member], "done": decode[Done],
	"resumed": decode[Resumed], "warning": decode[Warning], "check": decode[Check], "bench": decode[Bench],
}

// decode reads a line that has a header and T's fields and nothing else.
func decode[T Event](line []byte) (Event, error) {
	var all struct {
		header
		Body T
	}
	if err := json.Unmarshal(line, &all.header); err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, err
	}
	delete(fields, "event")
	delete(fields, "time")
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	strict := json.NewDecoder(bytes.NewReader(body))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&all.Body); err != nil {
		return nil, err
	}
	return all.Body, nil
}

// Parse reads what Marshal wrote; unknown kinds and fields are errors.
func Parse(line []byte) (time.Time, Event, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event: %w", err)
	}
	read, ok := decoders[h.Event]
	if !ok {
		return time.Time{}, nil, fmt.Errorf("decode event: unknown kind %q", h.Event)
	}
	at, err := time.Parse(time.RFC3339Nano, h.Time)
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event %s: time: %w", h.Event, err)
	}
	e, err := read(line)
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event %s: %w", h.Event, err)
	}
	return at, e, nil
}

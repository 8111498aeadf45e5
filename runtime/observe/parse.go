package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// kinds are the types of all events by the value of "event".
var kinds = func() map[string]reflect.Type {
	byKind := map[string]reflect.Type{}
	for _, e := range []Event{RankUp{}, Step{}, Eval{}, Snapshot{}, Failure{}, Recovered{}, Regrouped{}, Member{}, Done{}, Resumed{}, Warning{}, Check{}, Bench{}} {
		byKind[e.Kind()] = reflect.TypeOf(e)
	}
	return byKind
}()

// Parse reads a line that Marshal wrote, with or without its newline. Unknown
// kinds, unknown, missing and repeated fields are errors; null in place of a
// number becomes NaN.
func Parse(line []byte) (time.Time, Event, error) {
	fields, err := object(line)
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event: %w", err)
	}
	var kind, stamp string
	if err := errors.Join(take(fields, "event", &kind), take(fields, "time", &stamp)); err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event: %w", err)
	}
	t, ok := kinds[kind]
	if !ok {
		return time.Time{}, nil, fmt.Errorf("decode event: unknown kind %q", kind)
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err == nil && !writable(at.UTC()) {
		err = fmt.Errorf("%q is out of range", stamp)
	}
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event %s: time: %w", kind, err)
	}
	e, err := decode(t, fields)
	if err != nil {
		return time.Time{}, nil, fmt.Errorf("decode event %s: %w", kind, err)
	}
	return at, e, nil
}

// object splits one JSON object into its fields.
func object(line []byte) (map[string]json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		if _, ok := fields[name.(string)]; ok {
			return nil, fmt.Errorf("%v is there twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("%v: %w", name, err)
		}
		fields[name.(string)] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	return fields, nil
}

// take moves a field out of fields into the value that into points to. null
// leaves the value alone.
func take(fields map[string]json.RawMessage, name string, into any) error {
	raw, ok := fields[name]
	if !ok {
		return fmt.Errorf("%s is missing", name)
	}
	delete(fields, name)
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// decode makes an event of type t out of fields, which must be exactly its own.
func decode(t reflect.Type, fields map[string]json.RawMessage) (Event, error) {
	v := reflect.New(t).Elem()
	for i, f := range fieldsOf(t) {
		x := v.Field(i)
		raw, ok := fields[f.name]
		if !ok && f.optional {
			continue
		}
		null := string(raw) == "null"
		switch {
		case null && x.Kind() == reflect.Float64:
			x.SetFloat(math.NaN())
		case null && x.Kind() != reflect.Pointer && !f.optional:
			return nil, fmt.Errorf("%s is null", f.name)
		}
		if err := take(fields, f.name, x.Addr().Interface()); err != nil {
			return nil, err
		}
		if f.optional && x.Kind() == reflect.Slice && x.Len() == 0 {
			x.SetZero() // as if left out
		}
	}
	if len(fields) > 0 {
		var names []string
		for name := range fields {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("unknown field %q", strings.Join(names, ", "))
	}
	return v.Interface().(Event), nil
}

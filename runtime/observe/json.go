package observe

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
)

// timeFormat is RFC 3339 with all nine digits of a nanosecond.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// Marshal is the event as one JSON object without newline. Numbers that are not
// finite become null.
func Marshal(at time.Time, e Event) ([]byte, error) {
	at = at.UTC()
	if !writable(at) {
		return nil, fmt.Errorf("encode event %s: RFC 3339 has no year %d", e.Kind(), at.Year())
	}
	line := fmt.Appendf(nil, `{"event":%q,"time":%q`, e.Kind(), at.Format(timeFormat))
	v := reflect.ValueOf(e)
	for i, f := range fieldsOf(v.Type()) {
		if f.optional && v.Field(i).IsZero() {
			continue
		}
		value, err := encode(v.Field(i))
		if err != nil {
			return nil, fmt.Errorf("encode event %s: %s: %w", e.Kind(), f.name, err)
		}
		line = append(fmt.Appendf(line, `,%q:`, f.name), value...)
	}
	return append(line, '}'), nil
}

// writable holds for the years that RFC 3339 can write.
func writable(at time.Time) bool { return at.Year() >= 0 && at.Year() <= 9999 }

// field is how a struct's field looks in JSON.
type field struct {
	name     string
	optional bool // left out when zero
}

// fieldsOf are the fields of an event's type, in its own order.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[i] = field{name, options == "omitempty"}
	}
	return fields
}

// encode is json.Marshal, with null for a number that is not finite.
func encode(v reflect.Value) ([]byte, error) {
	x := v
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		x = v.Elem()
	}
	if x.Kind() == reflect.Float64 && (math.IsNaN(x.Float()) || math.IsInf(x.Float(), 0)) {
		return []byte("null"), nil
	}
	return json.Marshal(v.Interface())
}

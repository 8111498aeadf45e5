package jobs

import (
	"math"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// value is one TOML value and its place.
type value struct {
	kind   unstable.Kind
	text   string  // a string's content, a scalar as written
	items  []value // of an array
	fields []field // of an inline table, or of an item of [[cluster.nodes]]
	at     place
}

// field is one key of a table.
type field struct {
	path  []string
	at    place
	value value
}

// fault is what is wrong with a value.
type fault struct {
	at            place
	message, hint string
}

func (v value) fault(message, hint string) []fault {
	return []fault{{at: v.at, message: message, hint: hint}}
}

// mistyped says what was wanted in a value's stead.
func (v value) mistyped(want string) []fault {
	hint := ""
	switch {
	case want == "a string" && v.isScalar():
		hint = "write " + strconv.Quote(v.text)
	case v.kind == unstable.String && v.wouldBe(want):
		hint = "write it without quotes"
	}
	return v.fault("must be "+want+", not "+v.kindName(), hint)
}

func (v value) isScalar() bool {
	return v.kind != unstable.Array && v.kind != unstable.InlineTable
}

// wouldBe reports whether a string's content is what was wanted.
func (v value) wouldBe(want string) bool {
	switch want {
	case "an integer", `an integer or "auto"`:
		_, err := strconv.ParseInt(v.text, 10, 64)
		return err == nil
	case "a number":
		_, err := strconv.ParseFloat(v.text, 64)
		return err == nil
	case "true or false":
		return v.text == "true" || v.text == "false"
	}
	return false
}

func (v value) kindName() string {
	switch v.kind {
	case unstable.String:
		return "a string"
	case unstable.Bool:
		return "a boolean"
	case unstable.Integer:
		return "an integer"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	}
	return "a date or time"
}

// integer is the value as an integer of 64 bits.
func (v value) integer() (int64, []fault) {
	if v.kind != unstable.Integer {
		return 0, v.mistyped("an integer")
	}
	// TOML's prefixes 0x, 0o, 0b are Go's; its leading zeros are errors elsewhere.
	n, err := strconv.ParseInt(strings.ReplaceAll(v.text, "_", ""), 0, 64)
	if err != nil {
		return 0, v.fault("is not an integer of 64 bits: "+v.text, "")
	}
	return n, nil
}

// number is the value as a finite float; integers will do.
func (v value) number() (float64, []fault) {
	if v.kind == unstable.Integer {
		n, faults := v.integer()
		return float64(n), faults
	}
	if v.kind != unstable.Float {
		return 0, v.mistyped("a number")
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(v.text, "_", ""), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0, v.fault("must be finite, not "+v.text, "")
	}
	return x, nil
}

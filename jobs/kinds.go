package jobs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// kind is what a key takes: how to read it into a Job, and how to show it.
type kind struct {
	name   string // "integer"
	limits string // "1 to 64", or "" for any
	read   func(j *Job, v value) []fault
	show   func(j *Job) string // as TOML
}

// integer takes lo to hi.
func integer(lo, hi int, field func(*Job) *int) kind {
	limits := between(lo, hi)
	return kind{"integer", limits,
		func(j *Job, v value) []fault {
			n, faults := v.integer()
			if faults != nil {
				return faults
			}
			if n < int64(lo) || n > int64(hi) {
				return v.fault("must be "+limits+", not "+v.text, "")
			}
			*field(j) = int(n)
			return nil
		},
		func(j *Job) string { return strconv.Itoa(*field(j)) },
	}
}

func between(lo, hi int) string {
	if hi == math.MaxInt {
		return fmt.Sprintf("at least %d", lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// powerOfTwo takes 1, 2, 4, ... up to hi.
func powerOfTwo(hi int, field func(*Job) *int) kind {
	k := integer(1, hi, field)
	k.limits = fmt.Sprintf("a power of two, 1 to %d", hi)
	inRange := k.read
	k.read = func(j *Job, v value) []fault {
		if faults := inRange(j, v); faults != nil {
			return faults
		}
		if n := *field(j); n&(n-1) != 0 {
			return v.fault("must be a power of two, not "+v.text, "")
		}
		return nil
	}
	return k
}

// seed takes every integer that is not negative.
func seed(field func(*Job) *uint64) kind {
	return kind{"integer", "at least 0",
		func(j *Job, v value) []fault {
			n, faults := v.integer()
			if faults != nil {
				return faults
			}
			if n < 0 {
				return v.fault("must be at least 0, not "+v.text, "")
			}
			*field(j) = uint64(n)
			return nil
		},
		func(j *Job) string { return strconv.FormatUint(*field(j), 10) },
	}
}

// interval is a range of numbers; its open ends are not in it.
type interval struct {
	lo, hi         float64
	openLo, openHi bool
}

var (
	positive    = interval{lo: 0, openLo: true, hi: math.Inf(1)}
	notNegative = interval{lo: 0, hi: math.Inf(1)}
	fraction    = interval{lo: 0, hi: 1, openHi: true}
	share       = interval{lo: 0, openLo: true, hi: 1}
)

func (i interval) holds(x float64) bool {
	return x >= i.lo && x <= i.hi && !(i.openLo && x == i.lo) && !(i.openHi && x == i.hi)
}

func (i interval) String() string {
	low := fmt.Sprintf("at least %v", i.lo)
	if i.openLo {
		low = fmt.Sprintf("above %v", i.lo)
	}
	switch {
	case math.IsInf(i.hi, 1):
		return low
	case i.openHi:
		return fmt.Sprintf("%s and below %v", low, i.hi)
	}
	return fmt.Sprintf("%s and at most %v", low, i.hi)
}

func number(in interval, field func(*Job) *float64) kind {
	return kind{"number", in.String(),
		func(j *Job, v value) []fault { return readNumber(v, in, field(j)) },
		func(j *Job) string { return showNumber(*field(j)) },
	}
}

func readNumber(v value, in interval, into *float64) []fault {
	x, faults := v.number()
	if faults != nil {
		return faults
	}
	if !in.holds(x) {
		return v.fault("must be "+in.String()+", not "+v.text, "")
	}
	*into = x
	return nil
}

func showNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// pair takes a list of two numbers.
func pair(in interval, field func(*Job) *[2]float64) kind {
	return kind{"list of 2 numbers", "each " + in.String(),
		func(j *Job, v value) []fault {
			if v.kind != unstable.Array {
				return v.mistyped("a list of 2 numbers")
			}
			if len(v.items) != 2 {
				return v.fault(fmt.Sprintf("must be a list of 2 numbers, not of %d", len(v.items)), "")
			}
			var both [2]float64
			faults := append(readNumber(v.items[0], in, &both[0]), readNumber(v.items[1], in, &both[1])...)
			if faults == nil {
				*field(j) = both
			}
			return faults
		},
		func(j *Job) string { p := *field(j); return "[" + showNumber(p[0]) + ", " + showNumber(p[1]) + "]" },
	}
}

func boolean(field func(*Job) *bool) kind {
	return kind{"boolean", "true or false",
		func(j *Job, v value) []fault {
			if v.kind != unstable.Bool {
				return v.mistyped("true or false")
			}
			*field(j) = v.text == "true"
			return nil
		},
		func(j *Job) string { return strconv.FormatBool(*field(j)) },
	}
}

// str takes any string that check accepts; check returns what is wrong, or "".
func str(limits string, check func(string) (message, hint string), field func(*Job) *string) kind {
	return kind{"string", limits,
		func(j *Job, v value) []fault {
			if v.kind != unstable.String {
				return v.mistyped("a string")
			}
			if message, hint := check(v.text); message != "" {
				return v.fault(message, hint)
			}
			*field(j) = v.text
			return nil
		},
		func(j *Job) string { return strconv.Quote(*field(j)) },
	}
}

// choice takes one of the names. planned holds the message for those that a
// later version will take.
func choice(names []string, planned map[string]string, field func(*Job) *string) kind {
	limits := quotedList(names)
	check := func(text string) (message, hint string) {
		if slices.Contains(names, text) {
			return "", ""
		}
		if message, known := planned[text]; known {
			return message, ""
		}
		if near := nearest(text, names); near != "" {
			hint = didYouMean(strconv.Quote(near))
		}
		return "must be " + limits + ", not " + strconv.Quote(text), hint
	}
	return str(limits, check, field)
}

// quotedList is `"a", "b" or "c"`.
func quotedList(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	last := len(quoted) - 1
	if last == 0 {
		return quoted[0]
	}
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

// duration takes a string such as "90s" or "1h30m" of at least lo; 0 is taken
// too when zero says what that means.
func duration(lo time.Duration, zero string, field func(*Job) *time.Duration) kind {
	limits := "at least " + short(lo)
	if zero != "" && lo > 0 {
		limits += ", or 0 for " + zero
	}
	return kind{"duration", limits,
		func(j *Job, v value) []fault {
			d, faults := v.duration()
			if faults != nil {
				return faults
			}
			if d < lo && !(d == 0 && zero != "") {
				return v.fault("must be "+limits+", not "+short(d), "")
			}
			*field(j) = d
			return nil
		},
		func(j *Job) string { return strconv.Quote(short(*field(j))) },
	}
}

func (v value) duration() (time.Duration, []fault) {
	const hint = `write it as "90s", "10m" or "1h30m"`
	if v.kind == unstable.Integer && strings.Trim(v.text, "+-0") == "" {
		return 0, nil
	}
	if v.kind != unstable.String {
		return 0, v.fault("must be a duration, not "+v.kindName(), hint)
	}
	d, err := time.ParseDuration(v.text)
	if err != nil {
		return 0, v.fault("must be a duration, not "+strconv.Quote(v.text), hint)
	}
	return d, nil
}

// short drops the zero units that Duration.String ends with: "1h0m0s" is "1h".
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

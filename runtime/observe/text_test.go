package observe

import (
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain": "plain", "é中": "é中", "a\tb": "a\tb", "a\x00\x07b": "ab", "\xff": "\ufffd", "\u009b5Aa": "5Aa",
		"10%\r20%\r": "20%", "a\r\r\r": "a", "\r": "", "old\rnew": "new",
		"\x1b[2Ka\x1b[10;5Hb": "ab", "\x1b]0;title\x07a": "a", "\x1b]8;;http://x\x1b\\a": "a", "\x1bPq\x1b\\a": "a",
		"\x1b7a\x1b8\x1b(B\x1bc": "a", "a\x1b": "a", "a\x1b[": "a", "a\x1b[3": "a", "\x1b[>4;2ma": "a", "\x1b[?25la": "a",
		"\x1b[31ma\x1b[0m": "a", "\x1b\x1b[31ma": "a", "\x1b[\x07Aa": "Aa",
	} {
		if got := clean(in, false); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"\x1b[1;31ma": "\x1b[1;31ma\x1b[0m", "\x1b[2J\x1b[ma": "\x1b[ma\x1b[0m", "\x1b[>4ma": "a", "\x1b[38:5:1ma": "\x1b[38:5:1ma\x1b[0m", "a": "a",
	} {
		if got := clean(in, true); got != want {
			t.Errorf("in colour, %q became %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\rb", "\x1b[31m\x1b[2J\x1b]0;x\x07", "\x1b\x07[A", "\x1b\r[A", "\x1b[\x00A", "\xff\x1b\xff[A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, color := range []bool{false, true} {
			got := clean(s, color)
			rest := got
			if color {
				rest = sequence.ReplaceAllStringFunc(got, func(s string) string { return colour.ReplaceAllString(s, "") })
			}
			if strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
				t.Errorf("%q became %q", s, got)
			}
			if rest != got && !strings.HasSuffix(got, "\x1b[0m") {
				t.Errorf("%q became %q: its colour goes on", s, got)
			}
		}
	})
}

func TestNumbers(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3661 * time.Second: "1h01m", 90000 * time.Second: "1d01h"} {
		if got := remaining(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for x, want := range map[float64]string{999: "999", 999.9: "1.0k", 1234: "1.2k", 9990: "10k", 12345: "12k", 999900: "1.0M", 1234567: "1.2M"} {
		if got := short(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
	for x, want := range map[float64]string{2: "2.0000", -3.14159: "-3.1416", 1234567: "1.235e+06"} {
		if got := decimal(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

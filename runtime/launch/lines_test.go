package launch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// dumbLines splits the whole text at once.
func dumbLines(text string, max int) (want []string) {
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		for len(body) > max {
			want = append(want, fmt.Sprintf("%q", body[:max]))
			body = body[max:]
		}
		mark := ""
		if whole {
			mark = " whole"
		}
		if whole || body != "" {
			want = append(want, fmt.Sprintf("%q", body)+mark)
		}
	}
	return want
}

func FuzzReadLines(f *testing.F) {
	for _, text := range []string{"", "\n", "a", "a\n", "a\n\nb", "abcd", "abcd\n", "abcde\n", "abcdefghi", "\xff\x00\r\n"} {
		f.Add(text, 4)
	}
	f.Add(strings.Repeat("x", 200_000)+"\ny", 65536)
	f.Fuzz(func(t *testing.T, text string, max int) {
		if max < 1 || max > 1<<20 {
			return
		}
		var got []string
		emit := func(line []byte, whole bool) {
			mark := ""
			if whole {
				mark = " whole"
			}
			got = append(got, fmt.Sprintf("%q", line)+mark)
		}
		if err := ReadLines(iotest.HalfReader(bytes.NewReader([]byte(text))), max, emit); err != nil {
			t.Fatal(err)
		}
		if want := dumbLines(text, max); !slices.Equal(got, want) {
			t.Errorf("max %d: got %v, want %v", max, got, want)
		}
	})
}

package elastic

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"ddp/runtime/launch"
)

// TestReportsFitTheirLimit sends the longest line and event as JSON.
func TestReportsFitTheirLimit(t *testing.T) {
	for stream, size := range map[string]int{"stdout": maxLine, eventStream: maxEvent} {
		want := report{Line: &lineReport{Gen: 1 << 30, Rank: 1 << 30, Stream: stream, Text: []byte(strings.Repeat("\xff", size)), Part: true}}
		line, err := json.Marshal(want)
		if err != nil || len(line) > maxReport {
			t.Fatalf("%s: %d bytes, %v", stream, len(line), err)
		}
		if got, err := parseReport(line); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: came back otherwise: %v", stream, err)
		}
	}
}

// FuzzReport checks that what an agent may say parses or is refused, and that
// what parses comes back the same.
func FuzzReport(f *testing.F) {
	for _, r := range []report{
		{Hello: &hello{Version: 1, Host: "h"}}, {Listening: &listeningReport{1, 2}}, {Up: &upReport{1, []int{2, 3}}},
		{Exited: &exitedReport{Gen: 1, Exit: launch.Exit{Signal: 9}, ErrorFile: []byte("x")}}, {Quiet: &quietReport{1, []int{4}}},
	} {
		line, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseReport(line)
		if err != nil {
			return
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseReport(text)
		if err != nil {
			t.Fatal(err)
		}
		if text2, err := json.Marshal(again); err != nil || string(text2) != string(text) {
			t.Errorf("%q came back as %q", text, text2)
		}
	})
}

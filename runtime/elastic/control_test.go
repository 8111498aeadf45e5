package elastic

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ddp/runtime/launch"
)

var update = flag.Bool("update", false, "write the histories' answers anew")

// TestHistories replays testdata/*.txt. A history begins with "job" and its
// settings; a line "TIME EVENT" is followed by what the control plane answers,
// indented: its actions, and in parentheses its reason.
func TestHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("histories: %v, %v", files, err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the history goes now:\n%s", got)
			}
		})
	}
}

// replay returns text with the control plane's own answers.
func replay(t *testing.T, text string) string {
	var (
		out     strings.Builder
		control *Control
	)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, " "):
			continue // an answer
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "job "):
			control = NewControl(parseSettings(t, line))
		default:
			at, event, _ := strings.Cut(line, " ")
			now, err := time.ParseDuration(at)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			actions, reason := control.Step(now, parseEvent(t, event))
			fmt.Fprintln(&out, line)
			for _, a := range actions {
				fmt.Fprintf(&out, "    %v\n", a)
			}
			fmt.Fprintf(&out, "    (%s)\n", reason)
			continue
		}
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// words splits "a=1 b" into a map with "" for bare words.
func words(text string) map[string]string {
	m := map[string]string{}
	for w := range strings.FieldsSeq(text) {
		k, v, _ := strings.Cut(w, "=")
		m[k] = v
	}
	return m
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("number %q: %v", text, err)
	}
	return n
}

func parseSettings(t *testing.T, line string) Settings {
	var s Settings
	for k, v := range words(strings.TrimPrefix(line, "job ")) {
		var err error
		switch k {
		case "ranks":
			for n := range strings.SplitSeq(v, ",") {
				s.Ranks = append(s.Ranks, number(t, n))
			}
		case "store":
			s.Store = true
		case "live":
			s.Live = true
		case "min":
			s.MinNodes = number(t, v)
		case "max":
			s.MaxNodes = number(t, v)
		case "owncode":
			s.OwnCode = true
		case "restarts":
			s.MaxRestarts = number(t, v)
		case "window":
			s.Window, err = time.ParseDuration(v)
		case "grace":
			s.Grace, err = time.ParseDuration(v)
		default:
			t.Fatalf("setting %q", k)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func parseEvent(t *testing.T, text string) Event {
	name, rest, _ := strings.Cut(text, " ")
	w := words(rest)
	n := func(key string) int { return number(t, w[key]) }
	has := func(key string) bool { _, ok := w[key]; return ok }
	switch name {
	case "begin":
		return Begin{}
	case "joined":
		return Joined{n("node")}
	case "lost":
		return Lost{n("node")}
	case "listening":
		return Listening{n("gen")}
	case "up":
		return Up{n("gen"), n("node")}
	case "quiet":
		q := Quiet{Gen: n("gen"), Node: n("node")}
		if has("stuck") {
			q.Stuck = n("stuck")
		}
		return q
	case "ready":
		return Ready{n("node")}
	case "paused":
		return Paused{n("gen"), n("rank")}
	case "stranded":
		return Stranded{n("gen"), n("rank"), n("peer"), has("late"), has("apart")}
	case "offered":
		return Offered{n("ranks"), has("guest")}
	case "drain":
		return Drain{n("node")}
	case "signal":
		return Signalled{unix.SignalNum(rest)}
	case "expired":
		return Expired{}
	case "cancelled":
		return Cancelled{}
	case "exited":
		e := Exited{Gen: n("gen"), Rank: n("rank"), Report: has("report"), Victim: has("victim"), Permanent: has("permanent"), Crashed: has("crashed"), Hung: has("hung")}
		if e.Apart = has("apart"); e.Apart {
			e.Peer = n("apart")
		}
		if has("signal") {
			e.Exit = launch.Exit{Signal: unix.SignalNum(w["signal"])}
		} else {
			e.Exit = launch.Exit{Code: n("code")}
		}
		return e
	}
	t.Fatalf("unknown event %q", text)
	return nil
}

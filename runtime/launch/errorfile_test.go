package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ddp/runtime/store"
	"ddp/spmd"
)

func TestFailWritesWhatTorchReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "error.json")
	r := Rank{Rank: 3, ErrorFile: path}
	r.Fail(errors.New("loss is NaN"), 17)
	r.Fail(errors.New("broken pipe"), 18) // a consequence
	text, err := ReadErrorFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var torch struct {
		Message struct {
			Message   string
			ExtraInfo struct {
				Stack     string `json:"py_callstack"`
				Timestamp string
			}
		}
	}
	if err := json.Unmarshal(text, &torch); err != nil || torch.Message.Message != "loss is NaN" || torch.Message.ExtraInfo.Timestamp == "" {
		t.Errorf("torch reads %+v, %v", torch, err)
	}
	f := ParseErrorFile(text)
	if f.Message != "loss is NaN" || f.Rank != 3 || f.Step != 17 || f.Victim || f.Permanent || f.Host == "" || time.Since(f.Time) > time.Hour {
		t.Errorf("we read %+v", f)
	}
	if !strings.Contains(f.Stack, "TestFailWritesWhatTorchReads") {
		t.Errorf("stack: %s", f.Stack)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("files: %v", left)
	}
	Rank{}.Fail(errors.New("x"), 0) // no file, no harm
}

type permanent struct{ error }

func (permanent) Permanent() bool { return true }

func TestPermanent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "error.json")
	Rank{ErrorFile: path}.Fail(fmt.Errorf("step 4: %w", permanent{errors.New("diverged")}), 3)
	text, err := ReadErrorFile(path)
	if f := ParseErrorFile(text); err != nil || !f.Permanent {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestParseErrorFile(t *testing.T) {
	for text, want := range map[string]Failure{
		`{"message": {"message": "RuntimeError: x", "extraInfo": {"py_callstack": "File a", "timestamp": "1700000000"}}}`: {Message: "RuntimeError: x", Stack: "File a", Time: time.Unix(1700000000, 0)},
		`{"message": "plain"}`:   {Message: "plain"},
		`{"message": [1]}`:       {Message: "[1]"},
		`{"other": 1}`:           {Message: `{"other": 1}`},
		"no JSON at all\n":       {Message: "no JSON at all"},
		`{"message": {"message"`: {Message: `{"message": {"message"`},
	} {
		if got := ParseErrorFile([]byte(text)); got == nil || *got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := ParseErrorFile(nil); got != nil {
		t.Errorf("nothing: %+v", got)
	}
	if text, err := ReadErrorFile(filepath.Join(t.TempDir(), "none")); text != nil || err != nil {
		t.Errorf("no file: %q, %v", text, err)
	}
}

func FuzzParseErrorFile(f *testing.F) {
	f.Add([]byte(`{"message": {"message": "x", "extraInfo": {"timestamp": "1"}}, "ddp": {"rank": 1, "victim": true}}`))
	f.Add([]byte(`{"message": "x"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := ParseErrorFile(text)
		if (got == nil) != (len(text) == 0) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}

func TestVictims(t *testing.T) {
	gone := &spmd.PeerError{Rank: 1, Peer: 2, Op: "all-reduce", Err: io.EOF}
	late := &spmd.TimeoutError{Rank: 1, Peer: 3, Op: "barrier"}
	for _, c := range []struct {
		err    error
		peer   int
		victim bool
	}{
		{errors.New("own"), 0, false},
		{gone, 2, true},
		{fmt.Errorf("step 3: %w", late), 3, true},
		{errors.Join(gone, errors.New("close failed")), 2, true},
		{errors.Join(errors.New("own"), gone), 0, false},
		{fmt.Errorf("train: %w", errors.Join(fmt.Errorf("x: %w", gone))), 2, true},
		{fmt.Errorf("rendezvous: %w: %w", store.ErrLost, io.EOF), 0, true},
		{store.ErrClosed, 0, false},
	} {
		if peer, victim := victimOf(c.err); victim != c.victim || victim && peer != c.peer {
			t.Errorf("%v: %d, %v", c.err, peer, victim)
		}
	}
}

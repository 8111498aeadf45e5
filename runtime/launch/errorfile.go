package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Failure is what a rank says of its own end.
type Failure struct {
	Message   string    `json:"-"`
	Stack     string    `json:"-"`
	Rank      int       `json:"rank"`
	Step      int       `json:"step"` // the last completed one
	Host      string    `json:"host"`
	Time      time.Time `json:"time"`
	Victim    bool      `json:"victim,omitempty"`    // a peer was the cause
	Peer      int       `json:"peer,omitempty"`      // that peer, when Victim
	Apart     bool      `json:"apart,omitempty"`     // that peer cannot be reached from here
	Permanent bool      `json:"permanent,omitempty"` // running again would end the same way
}

// errorFile is torchelastic's format: readers of it find what they look for,
// and we find more under "ddp".
type errorFile struct {
	Message json.RawMessage `json:"message"`
	DDP     *Failure        `json:"ddp,omitempty"`
}

type errorMessage struct {
	Message   string `json:"message"`
	ExtraInfo struct {
		Stack     string `json:"py_callstack"`
		Timestamp string `json:"timestamp"` // seconds since 1970
	} `json:"extraInfo"`
}

// Fail writes the rank's error file: err, the last completed step, the caller's
// stack. The first report of a process stays; later ones are its consequences.
// An error that reports a broken peer marks the rank as a victim, one with a
// method Permanent() bool that returns true tells the launcher not to try again.
// Without an error file it does nothing; it never makes matters worse.
func (r Rank) Fail(err error, step int) {
	if r.ErrorFile == "" || err == nil {
		return
	}
	f := Failure{Message: err.Error(), Stack: string(debug.Stack()), Rank: r.Rank, Step: step, Time: time.Now()}
	f.Host, _ = os.Hostname()
	f.Peer, f.Victim = victimOf(err)
	f.Apart = f.Victim && Apart(err)
	var lasting interface{ Permanent() bool }
	f.Permanent = errors.As(err, &lasting) && lasting.Permanent()
	if err := f.write(r.ErrorFile); err != nil {
		fmt.Fprintf(os.Stderr, "ddp: write error file: %v\n", err)
	}
}

// EncodeFailure returns the text of f's error file.
func EncodeFailure(f Failure) []byte {
	var message errorMessage
	message.Message = f.Message
	message.ExtraInfo.Stack = f.Stack
	message.ExtraInfo.Timestamp = strconv.FormatInt(f.Time.Unix(), 10)
	inner, err := json.Marshal(message)
	if err == nil {
		inner, err = json.Marshal(errorFile{inner, &f})
	}
	if err != nil {
		return []byte(f.Message) // no value of these types fails
	}
	return inner
}

// write puts the file in place whole, unless there is one.
func (f Failure) write(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "error-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(EncodeFailure(f))
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// maxErrorFile bounds what is read of a file that any program may have written.
const maxErrorFile = 1 << 20

// ReadErrorFile returns the text of the file that a rank may have written, nil
// when it wrote none.
func ReadErrorFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read error file: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxErrorFile))
	if err != nil {
		return nil, fmt.Errorf("read error file: %w", err)
	}
	return text, nil
}

// ParseErrorFile returns what a rank reported; nil for an empty text. It reads
// torchelastic's files too; text of another format is taken as the message.
func ParseErrorFile(text []byte) *Failure {
	var file errorFile
	if len(text) == 0 {
		return nil
	}
	if json.Unmarshal(text, &file) != nil || len(file.Message) == 0 {
		return &Failure{Message: strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")}
	}
	f := file.DDP
	if f == nil {
		f = &Failure{}
	}
	var message errorMessage
	// torch writes the message as an object or as a plain string.
	if json.Unmarshal(file.Message, &message) == nil {
		f.Message, f.Stack = message.Message, message.ExtraInfo.Stack
		if seconds, err := strconv.ParseInt(message.ExtraInfo.Timestamp, 10, 64); err == nil && f.Time.IsZero() {
			f.Time = time.Unix(seconds, 0)
		}
	} else if json.Unmarshal(file.Message, &f.Message) != nil {
		f.Message = string(file.Message)
	}
	if file.DDP == nil {
		f.Victim = BlamesPeer(f.Message)
	}
	return f
}

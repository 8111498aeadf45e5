package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests that say so wait for leases and time-outs more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "ddp-test")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "ddp")
	if out, err := exec.Command("go", "build", "-o", binary, "ddp").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// event is any line of --json.
type event struct {
	Event         string
	Step          int
	Loss          float64
	ValLoss       *float64 `json:"val_loss"`
	Accuracy      *float64
	Rank          int
	PID           int
	Generation    int
	ISA           string
	WorldSize     int `json:"world_size"`
	Cause         string
	Signal        string
	Mode          string
	LostSteps     int     `json:"lost_steps"`
	DownMS        float64 `json:"down_ms"`
	Path          string
	Host          string
	Change        string
	LastOperation string `json:"last_operation"`
	FlightFile    string `json:"flight_file"`
	Reason        string
	Message       string
	Restarts      int
	ParamsSHA256  string `json:"params_sha256"`
}

// proc is a running `ddp`.
type proc struct {
	t      *testing.T
	cmd    *exec.Cmd
	events chan event
	stderr bytes.Buffer
	all    []event
	waited sync.Once
	err    error
}

// start runs `ddp` in dir and streams its events.
func start(t *testing.T, dir string, env []string, args ...string) *proc {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	return begin(t, cmd, (*exec.Cmd).Start)
}

// begin starts a command that prints events, and streams them.
func begin(t *testing.T, cmd *exec.Cmd, start func(*exec.Cmd) error) *proc {
	t.Helper()
	p := &proc{t: t, cmd: cmd, events: make(chan event, 1<<16)}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := start(p.cmd); err != nil {
		t.Fatal(err)
	}
	go p.read(stdout)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		p.wait()
	})
	return p
}

func (p *proc) read(r io.Reader) {
	defer close(p.events)
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			p.t.Errorf("stdout line is no JSON object: %q", in.Text())
			continue
		}
		p.events <- e
	}
}

// until waits for the first event that want accepts; false when the run ended first.
func (p *proc) until(want func(event) bool) (event, bool) {
	for e := range p.events {
		p.all = append(p.all, e)
		if want(e) {
			return e, true
		}
	}
	return event{}, false
}

// wait reads the remaining events and returns the exit code, 128+n when a signal ended it.
func (p *proc) wait() int {
	p.until(func(event) bool { return false })
	p.waited.Do(func() { p.err = p.cmd.Wait() })
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		if s := exit.Sys().(syscall.WaitStatus); s.Signaled() {
			return 128 + int(s.Signal())
		}
		return exit.ExitCode()
	}
	if p.err != nil {
		p.t.Fatalf("wait: %v", p.err)
	}
	return 0
}

// last is the newest event of a kind.
func (p *proc) last(kind string) (event, bool) {
	for i := len(p.all) - 1; i >= 0; i-- {
		if p.all[i].Event == kind {
			return p.all[i], true
		}
	}
	return event{}, false
}

// count is how many events of a kind there were.
func (p *proc) count(kind string) int {
	n := 0
	for _, e := range p.all {
		if e.Event == kind {
			n++
		}
	}
	return n
}

// finish runs to the end, which must have exit code 0, and returns the done event.
func (p *proc) finish() event {
	p.t.Helper()
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	done, ok := p.last("done")
	if !ok {
		p.t.Fatalf("no done event\n%s", p.stderr.String())
	}
	return done
}

// execute runs a command to its end.
func execute(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// tinyJob is small enough for hundreds of steps a second, with everything on:
// dropout, several shards, uneven last windows, evaluation and snapshots.
const tinyJob = `
name = "tiny"
[cluster]
ranks = 2
[recovery]
max_restarts = 30
[model]
n_layer = 2
n_head = 2
n_embd = 32
block_size = 16
dropout = 0.1
[data]
source = "text"
path = "text.txt"
split = 0.9
[train]
batch = 16
shards = 8
max_steps = 60
eval_every = 20
threads = 1
[optimizer]
lr = 1e-3
warmup_steps = 5
[snapshot]
dir = "snap"
every_steps = 5
keep = 3
`

// tinyFolder holds tinyJob and a text for it.
func tinyFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "job.toml"), tinyJob)
	write(t, filepath.Join(dir, "text.txt"), tinyText())
	return dir
}

// tinyText is 12 KB of words in an order without period.
func tinyText() string {
	words := strings.Fields("the light of rays is red and blue or both when glass bends them to violet ends")
	var b strings.Builder
	for i := 0; b.Len() < 12<<10; i++ {
		b.WriteString(words[(i*i+i/3)%len(words)])
		b.WriteByte(" \n"[i%11/10])
	}
	return b.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// noneLeft fails when a process of a run below dir is still alive.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second) // the kernel reaps a killed tree within milliseconds
	for {
		left := processesIn(dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes left: %v", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// processesIn lists the living processes of the binary whose working directory is dir.
func processesIn(dir string) []string {
	var left []string
	cwds, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range cwds {
		cwd, err := os.Readlink(link)
		if err != nil || cwd != dir {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		if err == nil && exe == binary {
			left = append(left, filepath.Base(filepath.Dir(link)))
		}
	}
	return left
}

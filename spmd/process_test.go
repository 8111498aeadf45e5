package spmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary, started again with roleVariable set, is one rank: a real
// process with a real death.
const roleVariable = "SPMD_TEST_ROLE"

// rankSpec is what a rank process is told.
type rankSpec struct {
	Scenario   string
	Store      string // a Unix socket
	Rank, Size int
	Transport  string
	HostID     string
	Timeout    time.Duration
}

// outcomeLine is what a rank process prints last.
type outcomeLine struct {
	Error   string
	Kind    string // of the error: peer, timeout, mismatch, other
	Peer    int
	Checks  int
	Reports []string
}

func rankProcess() int {
	var spec rankSpec
	if err := json.Unmarshal([]byte(os.Getenv(roleVariable)), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if spec.Scenario == "main" {
		Main(nil, func(ctx context.Context, w *World) error {
			fmt.Println("ready")
			<-ctx.Done()
			return context.Cause(ctx)
		})
		return 0
	}
	var out outcomeLine
	if err := runRank(spec, &out); err != nil {
		out.describe(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(out)
	return 0
}

func (o *outcomeLine) describe(err error) {
	o.Error, o.Kind, o.Peer = err.Error(), "other", -1
	var peer *PeerError
	var late *TimeoutError
	var mismatch *MismatchError
	switch {
	case errors.As(err, &peer):
		o.Kind, o.Peer = "peer", peer.Peer
	case errors.As(err, &late):
		o.Kind, o.Peer = "timeout", late.Peer
	case errors.As(err, &mismatch):
		o.Kind, o.Peer = "mismatch", mismatch.Peer
	}
}

func runRank(spec rankSpec, out *outcomeLine) error {
	ctx := context.Background()
	w, err := Join(ctx, Config{Rank: spec.Rank, Size: spec.Size, Store: socketStore(spec.Store), Secret: []byte("s"),
		Transport: spec.Transport, HostID: spec.HostID, Timeout: spec.Timeout})
	if err != nil {
		return err
	}
	defer w.Close()
	switch spec.Scenario {
	case "check":
		Check(ctx, w, func(name string, err error) {
			out.Checks++
			if err != nil {
				out.Reports = append(out.Reports, err.Error())
			}
		})
		return nil
	case "reduce for ever":
		x := make([]float32, 1<<20)
		for i := 0; ; i++ {
			if err := AllReduce(ctx, w, x, Sum); err != nil {
				return err
			}
			if i == 0 {
				fmt.Println("ready")
			}
		}
	case "receive for ever":
		fmt.Println("ready")
		return Recv(ctx, w, make([]float32, 10), (spec.Rank+1)%spec.Size, 0)
	case "measure":
		return measure(ctx, w, out)
	}
	return fmt.Errorf("there is no scenario %q", spec.Scenario)
}

func measure(ctx context.Context, w *World, out *outcomeLine) error {
	for _, m := range []struct {
		name         string
		bytes, iters int
	}{{"all-reduce", 100 << 20, 5}, {"gradient", 100 << 20, 5}, {"all-reduce", 1024, 2000}, {"send-recv", 1024, 1000}, {"barrier", 0, 2000}} {
		median, alg, bus, wrong, err := Bench(ctx, w, m.name, m.bytes, m.iters)
		if err != nil {
			return err
		}
		out.Reports = append(out.Reports, fmt.Sprintf("%-10s %9d B  %12v  algbw %6.2f GB/s  busbw %6.2f GB/s  wrong %d", m.name, m.bytes, median, alg, bus, wrong))
	}
	return nil
}

// child is a running rank process.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	errors *strings.Builder
}

// startRanks starts one process for each rank.
func startRanks(t testing.TB, n int, adjust func(s *rankSpec)) []*child {
	t.Helper()
	socket := serveSocketStore(t)
	children := make([]*child, n)
	for r := range children {
		spec := rankSpec{Store: socket, Rank: r, Size: n, Timeout: time.Minute}
		adjust(&spec)
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		c := &child{cmd: exec.CommandContext(t.Context(), os.Args[0]), errors: new(strings.Builder)}
		c.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
		c.cmd.Stderr = c.errors
		pipe, err := c.cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c.out = bufio.NewReader(pipe)
		children[r] = c
	}
	return children
}

func (c *child) awaitReady(t *testing.T) {
	t.Helper()
	if text, err := c.out.ReadString('\n'); err != nil || text != "ready\n" {
		rest, _ := io.ReadAll(c.out)
		t.Fatalf("a rank said %q%s (%v) instead of being ready; stderr: %s", text, rest, err, c.errors)
	}
}

func (c *child) outcome(t testing.TB) outcomeLine {
	t.Helper()
	text, _ := io.ReadAll(c.out)
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("a rank ended with %v; stdout: %s; stderr: %s", err, text, c.errors)
	}
	var o outcomeLine
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatalf("a rank said %q: %v", text, err)
	}
	return o
}

func TestProcessesCheck(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts int
		n     int
		tr    string
	}{{"shm", 1, 2, "shm"}, {"tcp", 1, 2, "tcp"}, {"two hosts", 2, 4, "auto"}} {
		t.Run(c.name, func(t *testing.T) {
			children := startRanks(t, c.n, func(s *rankSpec) {
				s.Scenario, s.Transport = "check", c.tr
				if c.hosts > 1 {
					s.HostID = fmt.Sprint("host", c.hosts*s.Rank/s.Size)
				}
			})
			for r, child := range children {
				o := child.outcome(t)
				if o.Error != "" || len(o.Reports) > 0 || o.Checks < 100 {
					t.Errorf("rank %d: %+v", r, o)
				}
			}
		})
	}
}

// TestProcessKilled kills one of three ranks amid a reduction, or while others
// wait for its message: each survivor blames it.
func TestProcessKilled(t *testing.T) {
	const victim = 1
	for _, tr := range []string{"shm", "tcp"} {
		t.Run(tr, func(t *testing.T) {
			children := startRanks(t, 3, func(s *rankSpec) { s.Scenario, s.Transport = "reduce for ever", tr })
			for _, c := range children {
				c.awaitReady(t)
			}
			if err := children[victim].cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for r, c := range children {
				if r == victim {
					_ = c.cmd.Wait()
					continue
				}
				if o := c.outcome(t); o.Kind != "peer" || o.Peer != victim {
					t.Errorf("rank %d: %+v", r, o)
				}
			}
		})
	}
	t.Run("message", func(t *testing.T) {
		children := startRanks(t, 2, func(s *rankSpec) { s.Scenario = "receive for ever" })
		for _, c := range children {
			c.awaitReady(t)
		}
		_ = children[1].cmd.Process.Kill()
		_ = children[1].cmd.Wait()
		if o := children[0].outcome(t); o.Kind != "peer" || o.Peer != 1 {
			t.Errorf("rank 0: %+v", o)
		}
	})
}

// TestProcessStopped stops a rank without ending it: the others' time-out
// names it.
func TestProcessStopped(t *testing.T) {
	children := startRanks(t, 2, func(s *rankSpec) { s.Scenario, s.Timeout = "reduce for ever", 2*time.Second })
	for _, c := range children {
		c.awaitReady(t)
	}
	if err := children[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if o := children[0].outcome(t); o.Kind != "timeout" || o.Peer != 1 || !strings.Contains(o.Error, "all-reduce") {
		t.Errorf("rank 0: %+v", o)
	}
	_ = children[1].cmd.Process.Kill()
	_ = children[1].cmd.Wait()
}

// TestMainEndsBySignal holds Main's message and exit status.
func TestMainEndsBySignal(t *testing.T) {
	c := startRanks(t, 1, func(s *rankSpec) { s.Scenario = "main" })[0]
	c.awaitReady(t)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("ended with %v", err)
	}
	if got := c.errors.String(); got != "rank 0: stopped by terminated\n" {
		t.Errorf("said %q", got)
	}
}

// BenchmarkTwoProcesses prints the figures of Bench between two processes. They
// mean something on a quiet machine only.
func BenchmarkTwoProcesses(b *testing.B) {
	for _, tr := range []string{"shm", "tcp"} {
		b.Run(tr, func(b *testing.B) {
			for b.Loop() {
				children := startRanks(b, 2, func(s *rankSpec) { s.Scenario, s.Transport = "measure", tr })
				for r, c := range children {
					if o := c.outcome(b); o.Error != "" || r == 0 {
						b.Logf("%s\n%s", o.Error, strings.Join(o.Reports, "\n"))
					}
				}
			}
		})
	}
}

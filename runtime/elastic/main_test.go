package elastic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ddp/runtime/launch"
	"ddp/spmd"
)

// The test binary plays all roles: behaviourVariable says what a rank does, and
// launcherVariable holds the Spec of a launcher that a test wants to kill.
const (
	behaviourVariable = "DDP_TEST_BEHAVIOUR"
	launcherVariable  = "DDP_TEST_LAUNCHER"
	markVariable      = "DDP_TEST_MARK"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(launch.RoleVariable) == launch.RoleAgent:
		os.Exit(AgentMain())
	case os.Getenv("RANK") != "":
		os.Exit(rankMain())
	case os.Getenv(launcherVariable) != "":
		os.Exit(launcherMain())
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("ddp/runtime/launch.spawnLoop"))
}

// rank is a test's rank: its behaviour is a list of words, one for each rank and
// generation, "rank.generation=word", "*" for any.
type rank struct {
	launch.Rank
	events *json.Encoder
}

func rankMain() int {
	place, _, err := launch.FromEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return launch.ExitUsage
	}
	r := rank{place, json.NewEncoder(place.Events())}
	return r.behave(r.word())
}

func (r rank) word() string {
	for pair := range strings.FieldsSeq(os.Getenv(behaviourVariable)) {
		who, word, _ := strings.Cut(pair, "=")
		rk, gen, _ := strings.Cut(who, ".")
		if (rk == "*" || rk == strconv.Itoa(r.Rank.Rank)) && (gen == "*" || gen == strconv.Itoa(r.Generation)) {
			return word
		}
	}
	return "exit:0"
}

// up tells the test that this rank is where it wants to be.
func (r rank) up() {
	r.events.Encode(map[string]int{"rank": r.Rank.Rank, "pid": os.Getpid()})
}

func (r rank) behave(word string) int {
	name, argument, _ := strings.Cut(word, ":")
	number, _ := strconv.Atoi(argument)
	switch name {
	case "live", "hang", "late", "done":
		return r.live()
	case "exit":
		return number
	case "fail": // reports, and exits with the code
		r.Fail(fmt.Errorf("rank %d had enough", r.Rank.Rank), 41)
		return number
	case "up-exit":
		r.up()
		return number
	case "wait": // until killed; SIGTERM ends it by default
		r.up()
		select {}
	case "connected": // rendezvous, then wait for a broken peer
		return r.connected()
	case "panic":
		go panic("out of " + argument)
		select {}
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		r.up()
		select {}
	case "graceful": // stops as asked, in its own time
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM, syscall.SIGUSR1)
		r.up()
		for s := range terms {
			fmt.Println("got", s)
			if s == syscall.SIGTERM {
				return number
			}
			r.up()
		}
	case "stray": // leaves a process in a session of its own, then waits
		if err := r.stray("setsid", "sleep", "1000"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		r.up()
		select {}
	case "bare-stray": // the same without its environment, orphaned; then is done
		if err := r.stray("sh", "-c", "env -i setsid sleep 1000 & "); err != nil {
			return 1
		}
		return 0
	case "talk":
		fmt.Print("first\nno newline at the end")
		fmt.Fprint(os.Stderr, strings.Repeat("x", 3<<20), "\nafter\n")
		return 0
	case "flood":
		out := bufio.NewWriter(os.Stdout)
		for i := range number {
			fmt.Fprintf(out, "rank %d line %d\n", r.Rank.Rank, i)
		}
		out.Flush()
		return 0
	case "victim":
		r.Fail(&spmd.PeerError{Rank: r.Rank.Rank, Peer: 0, Op: "all-reduce", Err: errors.New("rank 0 is gone")}, 7)
		return 1
	case "victim-then":
		r.Fail(&spmd.PeerError{Rank: r.Rank.Rank, Peer: 0, Op: "all-reduce", Err: errors.New("rank 0 is gone")}, 7)
		fmt.Println("victim is going")
		return 1
	case "sockets":
		return r.sockets()
	case "payload":
		payload, err := r.Payload()
		if err != nil {
			return 1
		}
		os.Stdout.Write(payload)
		return 0
	case "environment":
		env := os.Environ()
		slices.Sort(env)
		for _, e := range env {
			fmt.Println(e)
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "unknown behaviour", word)
	return launch.ExitUsage
}

// connected is up when all ranks have met in the store; it ends as a victim when
// the store dies.
func (r rank) connected() int {
	config, _, err := r.Connect(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	config.Store.Set(ctx, fmt.Sprint("here/", r.Rank.Rank), nil)
	for i := range r.WorldSize {
		if _, err := config.Store.Get(ctx, fmt.Sprint("here/", i)); err != nil {
			r.Fail(err, 0)
			return 1
		}
	}
	r.up()
	_, err = config.Store.Get(ctx, "never")
	fmt.Fprintln(os.Stderr, "lost:", err)
	r.Fail(err, 7)
	return 1
}

// sockets prints the sockets that this process has, and variables of a store.
func (r rank) sockets() int {
	if _, _, err := r.Connect(context.Background()); err != nil {
		fmt.Println(err)
	}
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			fmt.Println(to)
		}
	}
	for _, name := range []string{"MASTER_PORT", "DDP_STORE_FD"} {
		if value := os.Getenv(name); value != "" {
			fmt.Println(name, value)
		}
	}
	return 0
}

func (r rank) stray(argv ...string) error { return exec.Command(argv[0], argv[1:]...).Start() }

// launcherMain is a launcher in a process of its own. It prints the ranks' events
// and at last the Result.
func launcherMain() int {
	var spec Spec
	if err := json.Unmarshal([]byte(os.Getenv(launcherVariable)), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	os.Unsetenv(launcherVariable)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	spec.Signals = signals
	spec.OnEvent = func(_, _ int, line []byte) { fmt.Printf("%s\n", line) }
	res, err := Run(context.Background(), spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	return res.ExitCode
}

// job runs a Spec in this process and checks that it leaves no process.
type job struct {
	t      *testing.T
	spec   Spec
	mark   string
	events chan event          // what ranks said with up
	lines  map[string][]string // by "rank.stream"
	fails  []Failure
}

type event struct{ Gen, Rank, PID int }

func newJob(t *testing.T, behaviour string, nodes ...int) *job {
	t.Helper()
	j := &job{t: t, mark: fmt.Sprintf("%s-%d", t.Name(), os.Getpid()), events: make(chan event, 1000), lines: map[string][]string{}}
	for _, n := range nodes {
		j.spec.Nodes = append(j.spec.Nodes, Node{Ranks: n})
	}
	j.spec.RunID = t.Name()
	j.spec.LogDir = t.TempDir()
	// Set for the whole process, so that agents and guards carry it too.
	t.Setenv(markVariable, j.mark)
	t.Setenv(behaviourVariable, behaviour)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each rank otherwise
	j.spec.OnEvent = func(gen, rank int, line []byte) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Errorf("event %q: %v", line, err)
		}
		e.Gen = gen
		j.events <- e
	}
	j.spec.OnLine = func(gen, rank int, stream string, line []byte) {
		key := fmt.Sprintf("%d.%s", rank, stream)
		j.lines[key] = append(j.lines[key], string(line))
	}
	j.spec.OnFailure = func(f Failure) { j.fails = append(j.fails, f) }
	return j
}

// run runs the job while during runs beside it.
func (j *job) run(during func()) Result {
	j.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if during != nil {
			during()
		}
	}()
	res, err := Run(j.t.Context(), j.spec)
	if err != nil {
		j.t.Fatalf("run: %v", err)
	}
	<-done
	noneLeft(j.t, j.mark)
	if j.t.Failed() {
		text, _ := os.ReadFile(j.spec.LogDir + "/control.log")
		j.t.Logf("control.log:\n%s", text)
	}
	return res
}

// await returns the next n events.
func (j *job) await(n int) []event {
	var got []event
	for len(got) < n {
		select {
		case e := <-j.events:
			got = append(got, e)
		case <-time.After(20 * time.Second):
			j.t.Errorf("only %d of %d events came", len(got), n)
			return append(got, make([]event, n-len(got))...)
		}
	}
	return got
}

// carriers lists the processes whose environment holds mark, but for this one.
func carriers(t *testing.T, mark string) []string {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+markVariable+"="+mark+"\x00") {
			continue
		}
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		found = append(found, fmt.Sprintf("%d (%s)", pid, strings.ReplaceAll(string(command), "\x00", " ")))
	}
	return found
}

// noneLeft fails the test if processes carry mark, and clears them away.
func noneLeft(t *testing.T, mark string) {
	t.Helper()
	left := carriers(t, mark)
	if len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, p := range left {
		kill(t, pidIn(p), syscall.SIGKILL)
	}
}

// pidIn reads the number from a line of carriers.
func pidIn(carrier string) int {
	pid, _ := strconv.Atoi(strings.Fields(carrier)[0])
	return pid
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Errorf("no process to kill: %d", pid)
		return
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Errorf("kill %d: %v", pid, err)
	}
}

// pidOf reads the event of rank.up.
func pidOf(line []byte) int {
	var e event
	_ = json.Unmarshal(line, &e) // 0 is no process
	return e.PID
}

package elastic

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ddp/runtime/launch"
)

// live is a rank that obeys orders. Its word in each generation says what it
// does there: "live" works, "hang" shows signs of life and completes nothing,
// "late:N" waits for rank N in vain, "done" ends.
func (r rank) live() int {
	channel, err := r.Channel()
	if err != nil || channel == nil {
		fmt.Fprintln(os.Stderr, "no channel", err)
		return 1
	}
	channel.Send(launch.Status{Ready: true}, nil)
	stop := func() {}
	for {
		var o launch.Order
		socket, err := channel.Receive(&o)
		if err != nil {
			return 1
		}
		if socket != nil {
			socket.Close()
		}
		switch {
		case o.Pause:
			channel.Send(launch.Status{Paused: &launch.Paused{Generation: r.Generation}}, nil)
		case o.Place != nil:
			stop()
			r.Rank = r.In(*o.Place, nil)
			word, peer, _ := strings.Cut(r.word(), ":")
			if word == "done" {
				return 0
			}
			stop = r.beat(channel, word == "live")
			r.up()
			if word == "late" {
				n, _ := strconv.Atoi(peer)
				b := launch.Broken{Generation: r.Generation, Peer: n, Late: true, Cause: "nothing came"}
				time.AfterFunc(lateTime, func() { channel.Send(launch.Status{Broken: &b}, nil) })
			}
		}
	}
}

// lateTime is how long a rank waits in vain: longer than its peer takes to start.
const lateTime = 500 * time.Millisecond

// beat shows signs of life until the returned function is called.
func (r rank) beat(channel *launch.Channel, works bool) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(0); ; {
			if works {
				n++
			}
			channel.Send(launch.Status{Beat: &launch.Beat{Progress: n}}, nil)
			select {
			case <-tick.C:
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// TestRankThatCompletesNothing is replaced once its time is up, and its stacks
// are in its log.
func TestRankThatCompletesNothing(t *testing.T) {
	j := newJob(t, "1.0=hang *.0=live *.1=done", 2)
	j.spec.Live, j.spec.HangTimeout, j.spec.MaxRestarts = true, time.Second, 3
	res := j.run(nil)
	hung(t, j, res, "it has completed nothing for")
}

// TestRankThatIsWaitedForInVain is replaced when another says so.
func TestRankThatIsWaitedForInVain(t *testing.T) {
	j := newJob(t, "0.0=late:1 1.0=live *.1=done", 2)
	j.spec.Live, j.spec.HangTimeout, j.spec.MaxRestarts = true, time.Minute, 3
	res := j.run(nil)
	hung(t, j, res, "rank 0 waited for it in vain")
}

// hung wants rank 1 replaced, once, for a reason, with its stacks written.
func hung(t *testing.T, j *job, res Result, why string) {
	t.Helper()
	if res.ExitCode != 0 || res.Restarts != 1 || len(j.fails) != 1 {
		t.Fatalf("result %+v, failures %+v", res, j.fails)
	}
	if f := j.fails[0]; f.Rank != 1 || !strings.Contains(f.Cause, why) {
		t.Errorf("rank %d failed: %q, want rank 1: %q", f.Rank, f.Cause, why)
	}
	if text := strings.Join(j.lines["1.stderr"], "\n"); !strings.Contains(text, "goroutine") || !strings.Contains(text, "live") {
		t.Errorf("its log has no stacks: %q", text)
	}
}

// TestNodeComesAndGoes loses a node's agent: the ranks of the other go on
// without it, and it is taken in again at the end of a step.
func TestNodeComesAndGoes(t *testing.T) {
	j := newJob(t, "*.0=live *.1=live *.2=live *.3=done", 1, 1)
	j.spec.Live, j.spec.HangTimeout, j.spec.MaxRestarts = true, time.Minute, 3
	j.spec.MinNodes = 1
	var members []Member
	j.spec.OnMember = func(m Member) { members = append(members, m) }
	res := j.run(func() {
		first := j.await(2)
		pids := map[int]int{first[0].Rank: first[0].PID, first[1].Rank: first[1].PID}
		kill(t, parentOf(t, pids[1]), syscall.SIGKILL)
		alone := j.await(1)[0]
		if alone.Gen != 1 || alone.Rank != 0 || alone.PID != pids[0] {
			t.Errorf("after the loss came %+v, want rank 0 in generation 1 as process %d", alone, pids[0])
		}
		again := j.await(2)
		for _, e := range again {
			if e.Gen != 2 || e.Rank == 0 && e.PID != pids[0] || e.Rank == 1 && e.PID == pids[1] {
				t.Errorf("after the return came %+v", e)
			}
		}
		kill(t, pids[0], syscall.SIGKILL)
	})
	if res.ExitCode != 0 || len(members) != 2 || members[0].Came || members[0].WorldSize != 1 || !members[1].Came || members[1].WorldSize != 2 {
		t.Errorf("result %+v, members %+v", res, members)
	}
}

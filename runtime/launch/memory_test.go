package launch

import (
	"os"
	"slices"
	"testing"
)

func TestMemoryEventFiles(t *testing.T) {
	got := memoryEventFiles("9:name=systemd:/\n4:memory:/job/1\n0::/user.slice\nbroken\n")
	want := []string{"memory/job/1/memory.oom_control", "memory/memory.oom_control", "/user.slice/memory.events", "memory.events"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKillCount(t *testing.T) {
	for text, want := range map[string]int{
		"low 0\nhigh 0\nmax 3\noom 2\noom_kill 17\noom_group_kill 0\n": 17, // version 2
		"oom_kill_disable 0\nunder_oom 0\noom_kill 4\n":                4,  // version 1
		"oom_kill_disable 0\n":                                         -1,
		"oom_kill x\n":                                                 -1,
	} {
		got, ok := killCount(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestPayloadFile reads a payload twice through one descriptor.
func TestPayloadFile(t *testing.T) {
	want := make([]byte, 200_000)
	want[199_999] = 1
	file, err := PayloadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 2 {
		got, err := Rank{PayloadFD: int(file.Fd())}.Payload()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("read %d bytes, %v", len(got), err)
		}
	}
	if got, err := (Rank{}).Payload(); got != nil || err != nil {
		t.Errorf("no payload: %q, %v", got, err)
	}
	writeOnly, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writeOnly.Close()
	if _, err := (Rank{PayloadFD: int(writeOnly.Fd())}).Payload(); err == nil {
		t.Error("a descriptor that cannot be read gave a payload")
	}
}

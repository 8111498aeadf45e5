package elastic

import (
	"testing"
	"time"

	"ddp/runtime/launch"
)

// TestPatienceBeginsAnewWithAGeneration has a rank that waited in vain for a
// lost peer: the time counts against it no longer once it has a new place.
func TestPatienceBeginsAnewWithAGeneration(t *testing.T) {
	const patience = 4 * time.Second // six ticks
	m := &member{}
	m.ready.Store(true)
	tick := func() string {
		m.signs.note(launch.Beat{Progress: 7}) // it lives, and completes nothing
		return m.lifeless(patience)
	}
	m.signs.note(launch.Beat{Progress: 7})
	for range 5 {
		if why := tick(); why != "" {
			t.Fatal(why)
		}
	}
	m.signs.restart()
	for range 6 {
		if why := tick(); why != "" {
			t.Fatal(why)
		}
	}
	if tick() == "" {
		t.Error("a rank that completes nothing is not found out")
	}
}

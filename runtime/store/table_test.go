package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestTableAgainstAMap runs random verbs against the table and against a plain
// map with the waits checked by brute force after every step.
func TestTableAgainstAMap(t *testing.T) {
	for seed := range uint64(50) {
		compareWithMap(t, rand.New(rand.NewPCG(seed, 1)))
	}
}

// pendingWait is the dumb version's view of a wait.
type pendingWait struct {
	keys     []string
	answered bool // by the table
	due      bool // by the map
}

func compareWithMap(t *testing.T, rng *rand.Rand) {
	table, plain := newTable(), map[string][]byte{}
	var waits []*pendingWait
	key := func() string { return string('a' + rune(rng.IntN(4))) }
	for i := range 300 {
		k, v := key(), []byte(strconv.Itoa(rng.IntN(3)))
		old, present := plain[k]
		switch op(rng.IntN(int(opKeys))) + 1 {
		case opSet:
			table.apply(request{op: opSet, keys: []string{k}, value: v})
			plain[k] = v
		case opAdd:
			n, _ := strconv.ParseInt(string(old), 10, 64)
			if got := table.apply(request{op: opAdd, keys: []string{k}, delta: 2}).number; got != n+2 {
				t.Fatalf("step %d: add gives %d, want %d", i, got, n+2)
			}
			plain[k] = []byte(strconv.FormatInt(n+2, 10))
		case opCompareAndSet:
			want := []byte(strconv.Itoa(rng.IntN(3)))
			res := table.apply(request{op: opCompareAndSet, keys: []string{k}, hasOld: true, old: want, value: v})
			if swap := present && bytes.Equal(old, want); res.yes != swap {
				t.Fatalf("step %d: swapped %v, want %v", i, res.yes, swap)
			} else if swap {
				plain[k] = v
			}
		case opDelete:
			if got := table.apply(request{op: opDelete, keys: []string{k}}).yes; got != present {
				t.Fatalf("step %d: delete found %v, want %v", i, got, present)
			}
			delete(plain, k)
		case opKeys:
			var want []string
			for k := range plain {
				want = append(want, k)
			}
			slices.Sort(want)
			if got := table.apply(request{op: opKeys, keys: []string{""}}).keys; !slices.Equal(got, want) {
				t.Fatalf("step %d: keys %q, want %q", i, got, want)
			}
		default:
			w := &pendingWait{keys: []string{k, key()}}
			waits = append(waits, w)
			table.await(waitFor(request{op: opWait, keys: w.keys}, func(response) { w.answered = true }))
		}
		for _, w := range waits {
			_, first := plain[w.keys[0]]
			_, second := plain[w.keys[1]]
			w.due = w.due || first && second
			if w.answered != w.due {
				t.Fatalf("step %d: wait for %q answered %v, want %v", i, w.keys, w.answered, w.due)
			}
		}
	}
	for _, w := range waits {
		if !w.due {
			return
		}
	}
	if len(table.waiters) != 0 {
		t.Error(fmt.Sprint("answered waits are still filed: ", table.waiters))
	}
}

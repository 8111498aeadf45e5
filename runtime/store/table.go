package store

import (
	"bytes"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// table is the store's content and the requests that wait for a change of it.
// Every change of a key has a revision, one more than the change before it in
// the whole table; a deleted key keeps the revision of its deletion.
type table struct {
	mu       sync.Mutex
	entries  map[string]entry
	revision uint64
	waiters  map[string]map[*waiter]struct{}
}

type entry struct {
	value    []byte // never written to: it is part of the request that brought it
	present  bool
	revision uint64
}

// waiter is a request that is not answered yet.
type waiter struct {
	keys   []string
	answer func(t *table) (response, bool) // false: go on waiting
	reply  func(response)                  // must not block: it is called with the table locked
}

func newTable() *table {
	return &table{entries: map[string]entry{}, waiters: map[string]map[*waiter]struct{}{}}
}

// put changes a key and answers whoever waited for that.
func (t *table) put(key string, value []byte, present bool) {
	t.revision++
	t.entries[key] = entry{value, present, t.revision}
	for w := range t.waiters[key] {
		if res, ok := w.answer(t); ok {
			t.forget(w)
			w.reply(res)
		}
	}
}

// await answers w at once or files it.
func (t *table) await(w *waiter) {
	if res, ok := w.answer(t); ok {
		w.reply(res)
		return
	}
	for _, k := range w.keys {
		if t.waiters[k] == nil {
			t.waiters[k] = map[*waiter]struct{}{}
		}
		t.waiters[k][w] = struct{}{}
	}
}

// forget takes w from the table.
func (t *table) forget(w *waiter) {
	for _, k := range w.keys {
		delete(t.waiters[k], w)
		if len(t.waiters[k]) == 0 {
			delete(t.waiters, k)
		}
	}
}

// waitFor makes the waiter of a waiting verb: get, wait or watch.
func waitFor(r request, reply func(response)) *waiter {
	w := &waiter{keys: r.keys, reply: reply}
	switch r.op {
	case opGet:
		w.answer = func(t *table) (response, bool) {
			e := t.entries[r.keys[0]]
			return response{id: r.id, present: true, value: e.value}, e.present
		}
	case opWait:
		w.answer = func(t *table) (response, bool) {
			for _, k := range r.keys {
				if !t.entries[k].present {
					return response{}, false
				}
			}
			return response{id: r.id}, true
		}
	case opWatch:
		w.answer = func(t *table) (response, bool) {
			e := t.entries[r.keys[0]]
			// Revision 0 is a key that never was: news to a caller that knows nothing.
			known := e.revision + 1
			return response{id: r.id, present: e.present, value: e.value, revision: known}, known > r.after
		}
	}
	return w
}

// apply carries out a verb that never waits.
func (t *table) apply(r request) response {
	key := r.keys[0]
	e := t.entries[key]
	res := response{id: r.id}
	switch r.op {
	case opSet:
		t.put(key, r.value, true)
	case opAdd:
		sum, err := addTo(e, r.delta)
		if err != nil {
			res.failed = "add to " + strconv.Quote(key) + ": its value is no number"
			return res
		}
		t.put(key, strconv.AppendInt(nil, sum, 10), true)
		res.number = sum
	case opCompareAndSet:
		res.yes = e.present == r.hasOld && bytes.Equal(e.value, r.old)
		if res.yes {
			t.put(key, r.value, true)
		}
		e = t.entries[key]
		res.value, res.present = e.value, e.present
	case opDelete:
		if res.yes = e.present; res.yes {
			t.put(key, nil, false)
		}
	case opKeys:
		res.keys = t.withPrefix(key)
	}
	return res
}

// addTo reads a number in decimal, as c10d's store keeps them; an absent key counts as 0.
func addTo(e entry, delta int64) (int64, error) {
	if !e.present {
		return delta, nil
	}
	n, err := strconv.ParseInt(string(e.value), 10, 64)
	return n + delta, err
}

func (t *table) withPrefix(prefix string) []string {
	var keys []string
	for k, e := range t.entries {
		if e.present && strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

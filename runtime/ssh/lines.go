package ssh

import "sync"

// keptLines of what ssh said last are enough for a person.
const keptLines = 3

// lastLines are the last that were added. Its methods may be called concurrently.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	l.lines = l.lines[max(0, len(l.lines)-keptLines):]
}

func (l *lastLines) list() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

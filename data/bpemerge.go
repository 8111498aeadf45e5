package data

import "strings"

const (
	maxCachedPiece  = 64      // bytes; longer pieces hardly come again
	maxCachedPieces = 1 << 16 // then the cache begins anew
)

// merger turns pieces into tokens. It keeps the pieces that it has seen; it is
// used by one goroutine at a time.
type merger struct {
	of     *BPE
	seen   map[string]span
	tokens []int32 // of the pieces seen

	// One piece at work: a linked list of symbols, each at its first byte.
	symbols    []int32 // -1: merged into the one before
	prev, next []int32
	queue      heapOf[candidate]
}

// span is a piece's part of merger.tokens.
type span struct{ from, to int32 }

// candidate is a pair of neighbours that has a merge.
type candidate struct {
	rank, at    int32
	left, right int32
}

// before: the lowest rank, of equals the leftmost.
func (c candidate) before(d candidate) bool {
	return c.rank < d.rank || c.rank == d.rank && c.at < d.at
}

func newMerger(of *BPE) *merger { return &merger{of: of, seen: make(map[string]span)} }

// appendPiece appends the tokens of piece. It fails with the place of the byte
// that has no token; -1: none.
func (m *merger) appendPiece(out []int32, piece string) ([]int32, int) {
	if known, hit := m.seen[piece]; hit {
		return append(out, m.tokens[known.from:known.to]...), -1
	}
	from := len(out)
	if missing := m.load(piece); missing >= 0 {
		return out, missing
	}
	m.merge()
	for at := int32(0); at < int32(len(piece)); at = m.next[at] {
		out = append(out, m.symbols[at])
	}
	if len(piece) <= maxCachedPiece {
		m.keep(piece, out[from:])
	}
	return out, -1
}

// load makes each byte of piece a symbol and queues all pairs that can merge.
func (m *merger) load(piece string) (missing int) {
	m.symbols, m.prev, m.next, m.queue = m.symbols[:0], m.prev[:0], m.next[:0], m.queue[:0]
	for i := range len(piece) {
		token := m.of.bytes[piece[i]]
		if token < 0 {
			return i
		}
		m.symbols = append(m.symbols, token)
		m.prev = append(m.prev, int32(i)-1)
		m.next = append(m.next, int32(i)+1)
	}
	for i := range len(piece) - 1 {
		m.offer(int32(i))
	}
	return -1
}

// offer queues the pair that begins at a symbol, if it has a merge.
func (m *merger) offer(at int32) {
	next := m.next[at]
	if int(next) >= len(m.symbols) {
		return
	}
	left, right := m.symbols[at], m.symbols[next]
	if found, can := m.of.merges[pair{left, right}]; can {
		m.queue.push(candidate{rank: found.rank, at: at, left: left, right: right})
	}
}

// merge does merges until none is left.
func (m *merger) merge() {
	for len(m.queue) > 0 {
		c := m.queue.pop()
		next := m.next[c.at]
		if m.symbols[c.at] != c.left || int(next) >= len(m.symbols) || m.symbols[next] != c.right {
			continue // one of the two has gone into another token
		}
		m.symbols[c.at] = m.of.merges[pair{c.left, c.right}].token
		m.symbols[next] = -1
		after := m.next[next]
		m.next[c.at] = after
		if int(after) < len(m.symbols) {
			m.prev[after] = c.at
		}
		m.offer(c.at)
		if before := m.prev[c.at]; before >= 0 {
			m.offer(before)
		}
	}
}

func (m *merger) keep(piece string, tokens []int32) {
	if len(m.seen) >= maxCachedPieces {
		clear(m.seen)
		m.tokens = m.tokens[:0]
	}
	from := len(m.tokens)
	m.tokens = append(m.tokens, tokens...)
	m.seen[strings.Clone(piece)] = span{int32(from), int32(len(m.tokens))} // the text need not stay
}

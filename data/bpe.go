package data

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// EndOfText is the special token of GPT-2, between documents.
const EndOfText = "<|endoftext|>"

// BPE is GPT-2's byte-level byte-pair encoding: text is cut into pieces (see
// splitter), and in each piece neighbours are merged, the earliest learnt pair
// first. What has tokens comes back byte for byte; all texts have, unless the
// vocabulary lacks a byte.
type BPE struct {
	names   []string   // of each token, as files write it
	tokens  []string   // the bytes of each token
	bytes   [256]int32 // the token of each byte; -1: none
	order   []pair     // of the merges, by rank
	merges  map[pair]merge
	special []int32 // the special tokens, ascending

	split   splitter
	mergers sync.Pool // of *merger
}

// pair is two tokens that stand side by side.
type pair struct{ left, right int32 }

// merge is what becomes of a pair; the lowest rank merges first.
type merge struct{ rank, token int32 }

// bpeParts is a BPE as files tell it.
type bpeParts struct {
	names   []string    // of the tokens, in their order
	merges  [][2]string // names of pairs, in their order
	special []string    // names of special tokens
	guess   bool        // the special tokens are those that are neither a byte nor merged
}

// newBPE checks the parts and puts them together.
func newBPE(p bpeParts) (*BPE, error) {
	t := &BPE{names: p.names, tokens: make([]string, len(p.names)), merges: make(map[pair]merge, len(p.merges)), split: classTable()}
	t.mergers.New = func() any { return newMerger(t) }
	ids := make(map[string]int32, len(p.names))
	for id, name := range p.names {
		if name == "" {
			return nil, fmt.Errorf("token %d is empty", id)
		}
		if _, twice := ids[name]; twice {
			return nil, fmt.Errorf("token %q is there twice", name)
		}
		ids[name] = int32(id)
	}
	reached, err := t.addMerges(p.merges, ids)
	if err != nil {
		return nil, err
	}
	for b, c := range byteNames {
		t.bytes[b] = -1
		if id, known := ids[string(c)]; known {
			t.bytes[b], reached[id] = id, true
		}
	}
	special := p.special
	for id, name := range p.names {
		token, spelt := tokenBytes(name)
		if !spelt {
			token = name
		}
		t.tokens[id] = token
		if p.guess && !reached[id] {
			special = append(special, name)
		}
	}
	return t, t.addSpecial(special, ids)
}

// addMerges returns which tokens merges lead to.
func (t *BPE) addMerges(merges [][2]string, ids map[string]int32) (reached []bool, err error) {
	reached = make([]bool, len(ids))
	for rank, names := range merges {
		var parts [3]int32 // left, right, both
		for i, name := range []string{names[0], names[1], names[0] + names[1]} {
			id, known := ids[name]
			if !known {
				return nil, fmt.Errorf("merge %d (%q and %q): token %q is not in the vocabulary", rank+1, names[0], names[1], name)
			}
			parts[i] = id
		}
		p := pair{parts[0], parts[1]}
		if first, twice := t.merges[p]; twice {
			return nil, fmt.Errorf("merge %d (%q and %q) repeats merge %d", rank+1, names[0], names[1], first.rank+1)
		}
		t.merges[p] = merge{rank: int32(rank), token: parts[2]}
		t.order = append(t.order, p)
		reached[parts[2]] = true
	}
	return reached, nil
}

// addSpecial marks tokens that stand for themselves.
func (t *BPE) addSpecial(names []string, ids map[string]int32) error {
	for _, name := range names {
		id, known := ids[name]
		if !known {
			return fmt.Errorf("special token %q is not in the vocabulary", name)
		}
		t.tokens[id] = name
		t.special = append(t.special, id)
	}
	slices.Sort(t.special)
	t.special = slices.Compact(t.special)
	return nil
}

// Name is "bpe".
func (t *BPE) Name() string { return "bpe" }

// VocabSize is the number of tokens, special ones too.
func (t *BPE) VocabSize() int { return len(t.names) }

// Special is the special tokens' texts, in the order of their tokens.
func (t *BPE) Special() []string {
	var texts []string
	for _, id := range t.special {
		texts = append(texts, t.tokens[id])
	}
	return texts
}

// Encode takes all of text as ordinary text, also what looks like a special
// token. It fails only when the vocabulary lacks a byte, with an *Error.
func (t *BPE) Encode(text string) ([]int32, error) { return t.EncodeSpecial(text) }

// EncodeSpecial is Encode, but each of the allowed special tokens' texts
// becomes that token, the leftmost first, of those that begin at one place the
// longest. A text that is no special token is an *Error.
func (t *BPE) EncodeSpecial(text string, allowed ...string) ([]int32, error) {
	marks, err := t.marks(text, allowed)
	if err != nil {
		return nil, err
	}
	m := t.mergers.Get().(*merger)
	defer t.mergers.Put(m)
	tokens := make([]int32, 0, len(text)/4+1)
	for start := 0; ; {
		next := marks.after(start)
		if tokens, err = t.appendText(m, tokens, text, start, next.at); err != nil || next.text == "" {
			return tokens, err
		}
		tokens = append(tokens, next.token)
		start = next.at + len(next.text)
	}
}

// appendText appends the tokens of text[start:end].
func (t *BPE) appendText(m *merger, tokens []int32, text string, start, end int) ([]int32, error) {
	for start < end {
		size := t.split.piece(text[start:end])
		var missing int
		if tokens, missing = m.appendPiece(tokens, text[start:start+size]); missing >= 0 {
			at := start + missing
			return nil, faultf("", "", "byte 0x%02x at byte %d is not in the tokenizer's %d tokens", text[at], at, len(t.tokens))
		}
		start += size
	}
	return tokens, nil
}

// Decode is the bytes of tokens: a character may be spread over several of them.
func (t *BPE) Decode(tokens []int32) string {
	var b strings.Builder
	for _, token := range tokens {
		if token < 0 || int(token) >= len(t.tokens) {
			b.WriteRune(utf8.RuneError)
			continue
		}
		b.WriteString(t.tokens[token])
	}
	return b.String()
}

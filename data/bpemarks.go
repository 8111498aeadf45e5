package data

import (
	"slices"
	"strings"
)

// mark is an allowed special token and where it stands next.
type mark struct {
	text  string
	token int32
	at    int // the text's length: nowhere
}

// marks finds the allowed special tokens in a text, from its beginning to its end.
type marks struct {
	in  string
	all []mark
}

func (t *BPE) marks(text string, allowed []string) (*marks, error) {
	m := &marks{in: text}
	for _, name := range allowed {
		i := slices.IndexFunc(t.special, func(id int32) bool { return t.tokens[id] == name })
		if i < 0 {
			return nil, faultf("", "", "%q is no special token of the tokenizer", name)
		}
		m.all = append(m.all, mark{text: name, token: t.special[i], at: -1})
	}
	return m, nil
}

// after is the first mark that begins at or after start; one without text, at
// the text's end, when there is none.
func (m *marks) after(start int) mark {
	first := mark{at: len(m.in)}
	for i := range m.all {
		k := &m.all[i]
		if k.at < start {
			k.at = len(m.in)
			if found := strings.Index(m.in[start:], k.text); found >= 0 {
				k.at = start + found
			}
		}
		if k.at < first.at || k.at == first.at && k.at < len(m.in) && len(k.text) > len(first.text) {
			first = *k
		}
	}
	return first
}

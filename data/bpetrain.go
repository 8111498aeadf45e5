package data

import "slices"

// MinBPE is the smallest vocabulary of a BPE that is trained: all bytes, and
// EndOfText.
const MinBPE = 256 + 1

// MaxBPE is the largest vocabulary that TrainBPE is asked for.
const MaxBPE = 1 << 20

// BPEOptions say what TrainBPE makes.
type BPEOptions struct {
	Size         int // tokens, MinBPE to MaxBPE
	MinFrequency int // a pair must occur so often to become a token; 0: once
}

// TrainBPE learns a vocabulary from the texts that paths name, each as
// Config.Path. EndOfText is token 0, then come the bytes, then the merges,
// those of the most frequent pairs first. It is the vocabulary that Hugging
// Face's BpeTrainer learns with the ByteLevel pre-tokenizer (without a blank
// before the text) and its whole alphabet, from one string for each path. A
// text that is too short for Size gives fewer tokens. Faults are an *Error.
func TrainBPE(paths []string, o BPEOptions) (*BPE, error) {
	switch {
	case len(paths) == 0:
		return nil, faultf("", "", "no text to learn from")
	case o.Size < MinBPE || o.Size > MaxBPE:
		return nil, faultf("", "", "the vocabulary must have %d to %d tokens, not %d", MinBPE, MaxBPE, o.Size)
	case o.MinFrequency < 0:
		return nil, faultf("", "", "the least frequency must not be negative, it is %d", o.MinFrequency)
	}
	learner := newLearner()
	for _, path := range paths {
		text, err := readText(path, true)
		if err != nil {
			return nil, err
		}
		learner.read(text)
	}
	learner.learn(o)
	return newBPE(learner.parts())
}

// learner counts pairs of neighbours in words, which are the distinct pieces of
// the text, and merges the most frequent pair over and over. Its counts are
// those of BpeTrainer, which never takes a merged pair's count back: this
// matters when a token comes about in two ways.
type learner struct {
	places map[string]int32 // of each word
	words  [][]int32        // tokens of each word
	counts []int64          // how often each word occurs

	names  []string
	ids    map[string]int32
	merges []pair

	pairs map[pair]int64
	grown map[pair][]int32 // words in which a pair is new, since the last gather
	queue heapOf[frequent]
}

// frequent is a pair, its count when it was queued and the words that had it.
type frequent struct {
	pair  pair
	count int64
	words []int32
}

// before: the highest count, of equals the pair of the lowest tokens.
func (f frequent) before(g frequent) bool {
	switch {
	case f.count != g.count:
		return f.count > g.count
	case f.pair.left != g.pair.left:
		return f.pair.left < g.pair.left
	}
	return f.pair.right < g.pair.right
}

func newLearner() *learner {
	l := &learner{places: map[string]int32{}, ids: map[string]int32{}, pairs: map[pair]int64{}, grown: map[pair][]int32{}}
	l.token(EndOfText)
	alphabet := slices.Clone(byteNames[:])
	slices.Sort(alphabet)
	for _, c := range alphabet {
		l.token(string(c))
	}
	return l
}

// token is the number of a name, a new one when there is none yet.
func (l *learner) token(name string) int32 {
	id, known := l.ids[name]
	if !known {
		id = int32(len(l.names))
		l.ids[name] = id
		l.names = append(l.names, name)
	}
	return id
}

// read counts the pieces of a text.
func (l *learner) read(text string) {
	split := splitter(classTable())
	for len(text) > 0 {
		n := split.piece(text)
		place, known := l.places[text[:n]]
		if !known {
			place = int32(len(l.words))
			l.places[text[:n]] = place
			l.words = append(l.words, l.spell(text[:n]))
			l.counts = append(l.counts, 0)
		}
		l.counts[place]++
		text = text[n:]
	}
}

// spell is the tokens of a word's bytes.
func (l *learner) spell(word string) []int32 {
	tokens := make([]int32, len(word))
	for i := range len(word) {
		tokens[i] = l.ids[string(byteNames[word[i]])]
	}
	return tokens
}

// learn merges until the vocabulary is full or no pair is frequent enough.
func (l *learner) learn(o BPEOptions) {
	for place, word := range l.words {
		for i := 1; i < len(word); i++ {
			l.count(pair{word[i-1], word[i]}, 1, int32(place))
		}
	}
	l.gather()
	for len(l.names) < o.Size && len(l.queue) > 0 {
		top := l.queue.pop()
		if count := l.pairs[top.pair]; count != top.count {
			top.count = count
			l.queue.push(top)
			continue
		}
		if top.count < max(1, int64(o.MinFrequency)) {
			return
		}
		l.merge(top)
		l.gather()
	}
}

// merge makes one token of a pair, in the words that had it.
func (l *learner) merge(top frequent) {
	both := l.token(l.names[top.pair.left] + l.names[top.pair.right])
	l.merges = append(l.merges, top.pair)
	for _, place := range top.words {
		l.mergeWord(place, top.pair, both)
	}
}

// mergeWord replaces a pair in one word, from left to right.
func (l *learner) mergeWord(place int32, p pair, both int32) {
	word := l.words[place]
	merged := word[:0]
	for i := 0; i < len(word); i++ {
		if i+1 == len(word) || word[i] != p.left || word[i+1] != p.right {
			merged = append(merged, word[i])
			continue
		}
		if len(merged) > 0 {
			before := merged[len(merged)-1]
			l.count(pair{before, p.left}, -1, place)
			l.count(pair{before, both}, 1, place)
		}
		if i+2 < len(word) {
			l.count(pair{p.right, word[i+2]}, -1, place)
			l.count(pair{both, word[i+2]}, 1, place)
		}
		merged = append(merged, both)
		i++
	}
	l.words[place] = merged
}

// count adds a pair's occurrences in a word: one more, or one less.
func (l *learner) count(p pair, change int64, place int32) {
	l.pairs[p] += change * l.counts[place]
	if change < 0 {
		return
	}
	if words := l.grown[p]; len(words) == 0 || words[len(words)-1] != place {
		l.grown[p] = append(words, place)
	}
}

// gather queues the pairs that are new somewhere.
func (l *learner) gather() {
	for p, words := range l.grown {
		if count := l.pairs[p]; count > 0 {
			l.queue.push(frequent{pair: p, count: count, words: words})
		}
	}
	clear(l.grown)
}

// parts is what was learnt. Of a pair that was merged again the last time counts.
func (l *learner) parts() bpeParts {
	p := bpeParts{names: l.names, special: []string{EndOfText}}
	last := make(map[pair]int, len(l.merges))
	for i, m := range l.merges {
		last[m] = i
	}
	for i, m := range l.merges {
		if last[m] == i {
			p.merges = append(p.merges, [2]string{l.names[m.left], l.names[m.right]})
		}
	}
	return p
}

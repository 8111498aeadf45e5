package data

import "slices"

// Bounds of the sort task: MaxSymbols^MaxLength sequences still fit 63 bits.
const (
	MinLength  = 2
	MaxLength  = 18
	MinSymbols = 2
	MaxSymbols = 10
)

const (
	sortEpoch     = 10000 // windows an epoch, as in minGPT's demo; they are drawn anew each epoch
	maxQuestions  = 5000
	sortHeldOut   = 4         // one sequence in four is held out, by its hash
	sortSplitSalt = 0x50f7ed  // fixes which
	sortOrderSalt = 0x0fde4ed // and the order of the questions
)

// sorter is minGPT's sort demo: a sequence of symbols followed by the same
// symbols in order. The targets over the question are masked.
type sorter struct {
	length, symbols int
	seed            uint64
	questions       [][]int32 // distinct held-out sequences
}

// SortBlock is the block size for sequences of the given length: question and
// answer, less the last symbol, which is only a target.
func SortBlock(length int) int { return 2*length - 1 }

func newSorter(length, symbols int, seed uint64) (*sorter, error) {
	if length < MinLength || length > MaxLength {
		return nil, faultf("", "", "sort takes a length of %d to %d, not %d", MinLength, MaxLength, length)
	}
	if symbols < MinSymbols || symbols > MaxSymbols {
		return nil, faultf("", "", "sort takes %d to %d symbols, not %d", MinSymbols, MaxSymbols, symbols)
	}
	s := &sorter{length: length, symbols: symbols, seed: seed}
	var trainable bool
	s.questions, trainable = s.exam()
	if len(s.questions) == 0 || !trainable {
		return nil, faultf("", "raise data.length or data.symbols", "length %d and %d symbols give too few sequences to hold some out", length, symbols)
	}
	return s, nil
}

// exam walks all sequences in a fixed pseudo-random order and takes the first
// held-out ones. trainable says whether any of those passed is for training.
func (s *sorter) exam() (questions [][]int32, trainable bool) {
	total := uint64(1)
	for range s.length {
		total *= uint64(s.symbols)
	}
	order := newPermutation(total, derive(sortOrderSalt))
	for i := uint64(0); i < total && len(questions) < maxQuestions; i++ {
		sequence := s.decode(order.at(i))
		if s.heldOut(sequence) {
			questions = append(questions, sequence)
		} else {
			trainable = true
		}
	}
	return questions, trainable
}

func (s *sorter) decode(code uint64) []int32 {
	sequence := make([]int32, s.length)
	for i := range sequence {
		sequence[i] = int32(code % uint64(s.symbols))
		code /= uint64(s.symbols)
	}
	return sequence
}

// heldOut depends on the sequence alone, so no question is ever trained on.
func (s *sorter) heldOut(sequence []int32) bool {
	hash := derive(sortSplitSalt, uint64(s.length))
	for _, symbol := range sequence {
		hash = derive(hash, uint64(symbol))
	}
	return hash%sortHeldOut == 0
}

func (s *sorter) Name() string   { return "sort" }
func (s *sorter) VocabSize() int { return s.symbols }
func (s *sorter) BlockSize() int { return SortBlock(s.length) }
func (s *sorter) TrainLen() int  { return sortEpoch }
func (s *sorter) ValLen() int    { return len(s.questions) }

// Train draws a sequence that is not held out. Like minGPT's demo, half of the
// draws insist on many repeats: at most length/2 different symbols.
func (s *sorter) Train(i, epoch int, x, y []int32) {
	draws := stream{state: derive(s.seed, uint64(epoch), uint64(i))}
	sequence := make([]int32, s.length)
	for {
		for j := range sequence {
			sequence[j] = int32(draws.below(uint64(s.symbols)))
		}
		if draws.next()>>63 == 0 && distinct(sequence) > s.length/2 {
			continue
		}
		if !s.heldOut(sequence) {
			break
		}
	}
	s.window(sequence, x, y)
}

func (s *sorter) Val(i int, x, y []int32) { s.window(s.questions[i], x, y) }

func (s *sorter) Questions() int       { return len(s.questions) }
func (s *sorter) Prompt(i int) []int32 { return slices.Clone(s.questions[i]) }
func (s *sorter) Answer(i int) []int32 { return slices.Sorted(slices.Values(s.questions[i])) }

func (s *sorter) window(sequence, x, y []int32) {
	answer := slices.Sorted(slices.Values(sequence))
	fillWindow(slices.Concat(sequence, answer), s.length-1, x, y)
}

func distinct(sequence []int32) int {
	var seen [MaxSymbols]bool
	count := 0
	for _, symbol := range sequence {
		if !seen[symbol] {
			seen[symbol] = true
			count++
		}
	}
	return count
}

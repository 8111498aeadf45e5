// Package data turns a job's source into training windows: text files behind a
// character or byte tokenizer, and the two synthetic tasks adder and sort.
//
// Everything here is a pure function of the configuration, the seed and the
// position, so nothing has to be saved to resume: window i of epoch e is the
// same on every machine, and Sampler says which window each position of a run
// reads. Legend: T is the block size, the number of tokens that the model sees;
// a window is T inputs x and T targets y, where y[t] follows x[t].
package data

// Masked is the target of a position that must not count in the loss.
const Masked = -1

// Dataset is a source cut into windows. All methods are safe for concurrent
// use. x and y always have BlockSize values, which the callee overwrites; the
// caller keeps them.
type Dataset interface {
	// Name is the source: "text", "adder" or "sort".
	Name() string
	// VocabSize is the number of symbols; all tokens are below it.
	VocabSize() int
	// BlockSize is T.
	BlockSize() int
	// TrainLen is the number of training windows of an epoch, at least 1 and the same for every epoch.
	TrainLen() int
	// Train writes training window i, 0 <= i < TrainLen, of the given epoch.
	Train(i int, epoch int, x, y []int32)
	// ValLen is the number of validation windows; 0 when nothing is held out.
	ValLen() int
	// Val writes validation window i, 0 <= i < ValLen. Over all of them every
	// token that can be predicted is a target exactly once.
	Val(i int, x, y []int32)
}

// Exam is implemented by datasets whose held-out questions have one right
// answer: the model passes question i when greedy generation of len(Answer(i))
// tokens after Prompt(i) gives Answer(i). Reach it by asserting Set.Dataset.
// Safe for concurrent use; the slices are the caller's.
type Exam interface {
	Questions() int
	Prompt(i int) []int32
	Answer(i int) []int32
}

// fillWindow writes the window of one whole sequence of T+1 tokens, of which
// the first masked targets do not count.
func fillWindow(tokens []int32, masked int, x, y []int32) {
	copy(x, tokens[:len(tokens)-1])
	copy(y, tokens[1:])
	for t := range masked {
		y[t] = Masked
	}
}

package data

// text cuts one long run of tokens into windows. The first part, in reading
// order, is for training and the rest for validation; no window crosses the cut.
//
// Training windows of an epoch start stride tokens apart, the first at a phase
// drawn from [0, stride) by (seed, epoch). With stride >= T no token is a target
// twice in an epoch, yet each epoch cuts the text elsewhere. To have the same
// number of windows each epoch, up to stride-1 tokens at the end go unused.
//
// Validation windows lie end to end: every token but the first, which nothing
// precedes, is a target exactly once. The last window is filled up with masked
// targets.
type text struct {
	train, val []int32
	block      int
	stride     int
	phases     int // how many phases there are; at most stride
	windows    int // training windows an epoch
	vocab      int
	seed       uint64
}

func newText(tokens []int32, vocab int, c Config) (*text, error) {
	cut := int(float64(len(tokens)) * c.Split)
	train, val := tokens[:cut], tokens[cut:]
	if len(train) < c.BlockSize+1 {
		return nil, faultf(c.Path, "use a longer text, a larger data.split or a smaller model.block_size",
			"%d of %d tokens are for training, but one window takes %d", len(train), len(tokens), c.BlockSize+1)
	}
	if c.Split < 1 && len(val) < 2 {
		return nil, faultf(c.Path, "use a longer text, a smaller data.split, or split = 1 for no validation",
			"%d of %d tokens are for validation, but at least 2 are needed", len(val), len(tokens))
	}
	t := &text{train: train, val: val, block: c.BlockSize, stride: c.Stride, vocab: vocab, seed: c.Seed}
	if t.stride == 0 {
		t.stride = t.block
	}
	lastStart := len(train) - t.block - 1
	t.phases = min(t.stride, lastStart+1)
	t.windows = (lastStart-(t.phases-1))/t.stride + 1
	return t, nil
}

func (t *text) Name() string   { return "text" }
func (t *text) VocabSize() int { return t.vocab }
func (t *text) BlockSize() int { return t.block }
func (t *text) TrainLen() int  { return t.windows }

func (t *text) Train(i, epoch int, x, y []int32) {
	start := t.phase(epoch) + i*t.stride
	copy(x, t.train[start:start+t.block])
	copy(y, t.train[start+1:start+1+t.block])
}

func (t *text) phase(epoch int) int {
	draws := stream{state: derive(t.seed, uint64(epoch))}
	return int(draws.below(uint64(t.phases)))
}

func (t *text) ValLen() int {
	if len(t.val) < 2 {
		return 0
	}
	return (len(t.val) - 2 + t.block) / t.block
}

func (t *text) Val(i int, x, y []int32) {
	start := i * t.block
	n := copy(y, t.val[start+1:])
	copy(x[:n], t.val[start:])
	for j := n; j < t.block; j++ {
		x[j], y[j] = 0, Masked
	}
}

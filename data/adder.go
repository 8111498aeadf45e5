package data

import "fmt"

// splitKey fixes which additions are held out, whatever the job's seed, so that
// runs with different seeds sit the same exam.
const splitKey = 1337

// Bounds of the adder's digits; (10^MaxDigits)^2 additions still fit an int.
const (
	MinDigits = 1
	MaxDigits = 6
)

// adder is minGPT's addition demo: numbers a and b of d digits and their sum of
// d+1 digits, written as digits without separators, the sum reversed because
// carries run from the lowest digit. 85+50=135 with d=2 reads 8 5 5 0 5 3 1.
// The targets over a and b are masked: they cannot be known.
type adder struct {
	digits  int
	limit   int // 10^digits: numbers are below it
	heldOut int // this many additions are the exam, the others are for training
	order   permutation
}

// AdderBlock is the block size of additions of numbers with so many digits:
// 2d digits of the numbers and d+1 of the sum, less the last, which is only a target.
func AdderBlock(digits int) int { return 3 * digits }

func newAdder(digits int) (*adder, error) {
	if digits < MinDigits || digits > MaxDigits {
		return nil, faultf("", "", "the adder takes %d to %d digits, not %d", MinDigits, MaxDigits, digits)
	}
	limit := 1
	for range digits {
		limit *= 10
	}
	return &adder{
		digits: digits, limit: limit,
		heldOut: min(limit*limit/5, 500),
		order:   newPermutation(uint64(limit*limit), derive(splitKey)),
	}, nil
}

func (a *adder) Name() string   { return "adder" }
func (a *adder) VocabSize() int { return 10 }
func (a *adder) BlockSize() int { return AdderBlock(a.digits) }
func (a *adder) TrainLen() int  { return a.limit*a.limit - a.heldOut }
func (a *adder) ValLen() int    { return a.heldOut }

func (a *adder) Train(i, _ int, x, y []int32) { a.window(a.addition(a.heldOut+i), x, y) }
func (a *adder) Val(i int, x, y []int32)      { a.window(a.addition(i), x, y) }

func (a *adder) Questions() int       { return a.heldOut }
func (a *adder) Prompt(i int) []int32 { return a.addition(i)[:2*a.digits] }
func (a *adder) Answer(i int) []int32 { return a.addition(i)[2*a.digits:] }

// addition is the i-th of all, in the permuted order, as 3d+1 digits.
func (a *adder) addition(i int) []int32 {
	pair := int(a.order.at(uint64(i)))
	left, right := pair/a.limit, pair%a.limit
	sum := fmt.Sprintf("%0*d", a.digits+1, left+right)
	tokens := make([]int32, 0, 3*a.digits+1)
	for _, digit := range fmt.Sprintf("%0*d%0*d", a.digits, left, a.digits, right) {
		tokens = append(tokens, digit-'0')
	}
	for i := len(sum) - 1; i >= 0; i-- {
		tokens = append(tokens, int32(sum[i]-'0'))
	}
	return tokens
}

func (a *adder) window(tokens []int32, x, y []int32) {
	fillWindow(tokens, 2*a.digits-1, x, y)
}

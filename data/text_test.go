package data

import (
	"fmt"
	"slices"
	"testing"
)

// counted is a text whose token at position i is i, so that windows show where they were cut.
func counted(t *testing.T, n int, c Config) *text {
	t.Helper()
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	set, err := newText(tokens, n, c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Over a grid of sizes: windows are runs of the training part, none is cut out
// of bounds, and with stride >= T no token is a target twice in an epoch.
func TestTrainWindows(t *testing.T) {
	for _, n := range []int{20, 33, 64, 100, 257} {
		for _, block := range []int{1, 4, 7, 8} {
			for _, stride := range []int{0, 1, 3, 8, 11, 1000} {
				set := counted(t, n, Config{Split: 0.8, BlockSize: block, Stride: stride, Seed: 3})
				checkTrainWindows(t, set, fmt.Sprintf("n %d, T %d, stride %d", n, block, stride))
			}
		}
	}
}

func checkTrainWindows(t *testing.T, set *text, name string) {
	t.Helper()
	x, y := make([]int32, set.block), make([]int32, set.block)
	for epoch := range 5 {
		targets := map[int32]bool{}
		for i := range set.TrainLen() {
			set.Train(i, epoch, x, y)
			for j := range x {
				if x[j] != x[0]+int32(j) || y[j] != x[j]+1 || int(y[j]) >= len(set.train) {
					t.Fatalf("%s: window %d is %v -> %v of %d tokens", name, i, x, y, len(set.train))
				}
				if set.stride >= set.block && targets[y[j]] {
					t.Fatalf("%s: token %d is a target twice in epoch %d", name, y[j], epoch)
				}
				targets[y[j]] = true
			}
		}
		if unused := len(set.train) - 1 - len(targets); set.stride <= set.block && unused > 2*(set.stride-1) && unused > set.block {
			t.Errorf("%s: %d of %d tokens are no target in epoch %d", name, unused, len(set.train), epoch)
		}
	}
}

func TestEpochsCutElsewhere(t *testing.T) {
	set := counted(t, 1000, Config{Split: 0.9, BlockSize: 16, Seed: 1})
	starts := map[int32]bool{}
	x, y := make([]int32, 16), make([]int32, 16)
	for epoch := range 400 {
		set.Train(0, epoch, x, y)
		starts[x[0]] = true
	}
	if len(starts) != 16 {
		t.Errorf("%d of 16 phases occur in 400 epochs", len(starts))
	}
	other := counted(t, 1000, Config{Split: 0.9, BlockSize: 16, Seed: 2})
	same := 0
	for epoch := range 400 {
		if set.phase(epoch) == other.phase(epoch) {
			same++
		}
	}
	if same > 60 {
		t.Errorf("seeds 1 and 2 have the same phase in %d of 400 epochs", same)
	}
}

// A snapshot resumes on another version of the program only while this holds.
func TestPhaseGolden(t *testing.T) {
	set := counted(t, 1000, Config{Split: 0.9, BlockSize: 128, Seed: 1337})
	got := []int{set.phase(0), set.phase(1), set.phase(2), set.phase(3)}
	if want := []int{45, 82, 89, 33}; !slices.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
}

func TestValidationCoversEachTokenOnce(t *testing.T) {
	for n := 12; n < 80; n++ {
		for _, block := range []int{1, 2, 5, 8} {
			set := counted(t, n, Config{Split: 0.75, BlockSize: block})
			x, y := make([]int32, block), make([]int32, block)
			next := len(set.train) + 1 // nothing of the validation part precedes its first token
			for i := range set.ValLen() {
				set.Val(i, x, y)
				for j := range y {
					if y[j] == Masked {
						if i != set.ValLen()-1 || x[j] != 0 {
							t.Fatalf("n %d, T %d: window %d of %d is %v -> %v", n, block, i, set.ValLen(), x, y)
						}
						continue
					}
					if int(y[j]) != next || x[j] != y[j]-1 {
						t.Fatalf("n %d, T %d: window %d has target %d after %d, want %d", n, block, i, y[j], x[j], next)
					}
					next++
				}
			}
			if next != n {
				t.Errorf("n %d, T %d: targets end before %d", n, block, next)
			}
		}
	}
}

func TestNoValidation(t *testing.T) {
	set := counted(t, 50, Config{Split: 1, BlockSize: 8})
	if set.ValLen() != 0 || len(set.train) != 50 {
		t.Errorf("%d validation windows, %d training tokens", set.ValLen(), len(set.train))
	}
}

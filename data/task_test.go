package data

import (
	"fmt"
	"slices"
	"testing"
)

var (
	_ Exam = (*adder)(nil)
	_ Exam = (*sorter)(nil)
)

func mustOpen(t *testing.T, c Config) *Set {
	t.Helper()
	set, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// All 10,000 additions of two digits: each right by arithmetic, each once, 500 held out.
func TestAdderIsMinGPTs(t *testing.T) {
	set := mustOpen(t, Config{Source: "adder", Digits: 2})
	if set.TrainLen() != 9500 || set.ValLen() != 500 || set.BlockSize() != 6 || set.VocabSize() != 10 {
		t.Fatalf("%d train, %d validation, T %d, V %d", set.TrainLen(), set.ValLen(), set.BlockSize(), set.VocabSize())
	}
	seen := map[[2]int32]bool{}
	x, y := make([]int32, 6), make([]int32, 6)
	check := func() {
		a, b := x[0]*10+x[1], x[2]*10+x[3]
		sum := y[3] + 10*y[4] + 100*y[5]
		if a+b != sum || !slices.Equal(y[:3], []int32{-1, -1, -1}) || !slices.Equal(x[4:], y[3:5]) {
			t.Fatalf("%d+%d is %v -> %v", a, b, x, y)
		}
		if seen[[2]int32{a, b}] {
			t.Fatalf("%d+%d comes twice", a, b)
		}
		seen[[2]int32{a, b}] = true
	}
	for i := range set.TrainLen() {
		set.Train(i, 0, x, y)
		check()
	}
	for i := range set.ValLen() {
		set.Val(i, x, y)
		check()
	}
}

func TestAdderExam(t *testing.T) {
	for digits, questions := range map[int]int{1: 20, 2: 500, 3: 500, 6: 500} {
		set := mustOpen(t, Config{Source: "adder", Digits: digits})
		exam := set.Dataset.(Exam)
		if exam.Questions() != questions {
			t.Errorf("%d digits: %d questions, want %d", digits, exam.Questions(), questions)
		}
		for i := range exam.Questions() {
			var a, b, sum int
			prompt, answer := exam.Prompt(i), exam.Answer(i)
			for _, d := range prompt[:digits] {
				a = 10*a + int(d)
			}
			for _, d := range prompt[digits:] {
				b = 10*b + int(d)
			}
			for _, d := range slices.Backward(answer) {
				sum = 10*sum + int(d)
			}
			if a+b != sum || len(prompt) != 2*digits || len(answer) != digits+1 {
				t.Fatalf("%d digits: prompt %v, answer %v", digits, prompt, answer)
			}
		}
	}
}

func TestSortIsMinGPTs(t *testing.T) {
	set := mustOpen(t, Config{Source: "sort", Length: 6, Symbols: 3, Seed: 1})
	if set.BlockSize() != 11 || set.VocabSize() != 3 {
		t.Fatalf("T %d, V %d", set.BlockSize(), set.VocabSize())
	}
	exam := set.Dataset.(Exam)
	questions := map[string]bool{}
	for i := range exam.Questions() {
		prompt, answer := exam.Prompt(i), exam.Answer(i)
		if questions[fmt.Sprint(prompt)] {
			t.Fatalf("question %v comes twice", prompt)
		}
		questions[fmt.Sprint(prompt)] = true
		if want := slices.Sorted(slices.Values(prompt)); !slices.Equal(answer, want) {
			t.Fatalf("%v sorted is %v, want %v", prompt, answer, want)
		}
	}
	if len(questions) < 729/8 || len(questions) > 729/2 {
		t.Errorf("%d of 729 sequences are held out", len(questions))
	}
	trained := map[string]bool{}
	x, y := make([]int32, 11), make([]int32, 11)
	for i := range set.TrainLen() {
		set.Train(i, 0, x, y)
		question := slices.Clone(x[:6])
		if questions[fmt.Sprint(question)] {
			t.Fatalf("held-out %v is trained on", question)
		}
		trained[fmt.Sprint(question)] = true
		if !slices.Equal(y[5:], slices.Sorted(slices.Values(question))) || !slices.Equal(x[6:], y[5:10]) {
			t.Fatalf("window %v -> %v", x, y)
		}
		if !slices.Equal(y[:5], []int32{-1, -1, -1, -1, -1}) {
			t.Fatalf("targets %v are not masked over the question", y)
		}
	}
	if len(trained)+len(questions) != 729 {
		t.Errorf("%d sequences trained on and %d held out of 729", len(trained), len(questions))
	}
}

// Half of the draws insist on at most length/2 different symbols. 8 draws of 10
// symbols have at most 4 different ones with p = 9.3%; the bias makes
// that p/(p + (1-p)/2) = 17%: 342 of 2000.
func TestSortFavoursRepeats(t *testing.T) {
	set := mustOpen(t, Config{Source: "sort", Length: 8, Symbols: 10, Seed: 1})
	x, y := make([]int32, 15), make([]int32, 15)
	repeats := 0
	for i := range 2000 {
		set.Train(i, 0, x, y)
		if distinct(x[:8]) <= 4 {
			repeats++
		}
	}
	if repeats < 290 || repeats > 395 {
		t.Errorf("%d of 2000 sequences have at most 4 different symbols", repeats)
	}
	if exam := set.Dataset.(Exam); exam.Questions() != maxQuestions {
		t.Errorf("%d questions of %d", exam.Questions(), maxQuestions)
	}
}

func TestTrainIsAPureFunction(t *testing.T) {
	set := mustOpen(t, Config{Source: "sort", Length: 6, Symbols: 3, Seed: 1})
	window := func(s *Set, i, epoch int) string {
		x, y := make([]int32, 11), make([]int32, 11)
		s.Train(i, epoch, x, y)
		return fmt.Sprint(x, y)
	}
	first := window(set, 4, 2)
	window(set, 5, 3)
	if again := window(set, 4, 2); again != first {
		t.Errorf("window 4 of epoch 2 was %s and is %s", first, again)
	}
	differ := func(what string, other func(i int) string) {
		same := 0
		for i := range 50 {
			if window(set, i, 2) == other(i) {
				same++
			}
		}
		if same > 10 {
			t.Errorf("%d of 50 windows do not depend on the %s", same, what)
		}
	}
	differ("epoch", func(i int) string { return window(set, i, 3) })
	reseeded := mustOpen(t, Config{Source: "sort", Length: 6, Symbols: 3, Seed: 2})
	differ("seed", func(i int) string { return window(reseeded, i, 2) })
}

// A snapshot resumes on another version of the program only while these hold.
func TestTaskGolden(t *testing.T) {
	add := mustOpen(t, Config{Source: "adder", Digits: 2})
	srt := mustOpen(t, Config{Source: "sort", Length: 6, Symbols: 3, Seed: 1337})
	for _, c := range []struct {
		name, want string
		set        *Set
		write      func(x, y []int32)
	}{
		{"adder train", "[0 3 6 4 7 6] [-1 -1 -1 7 6 0]", add, func(x, y []int32) { add.Train(7, 1, x, y) }},
		{"adder validation", "[7 5 1 5 0 9] [-1 -1 -1 0 9 0]", add, func(x, y []int32) { add.Val(7, x, y) }},
		{"sort train", "[0 1 2 1 2 2 0 1 1 2 2] [-1 -1 -1 -1 -1 0 1 1 2 2 2]", srt, func(x, y []int32) { srt.Train(7, 1, x, y) }},
		{"sort validation", "[0 0 0 0 1 0 0 0 0 0 0] [-1 -1 -1 -1 -1 0 0 0 0 0 1]", srt, func(x, y []int32) { srt.Val(7, x, y) }},
	} {
		x, y := make([]int32, c.set.BlockSize()), make([]int32, c.set.BlockSize())
		c.write(x, y)
		if got := fmt.Sprint(x, y); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

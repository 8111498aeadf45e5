package data

import (
	"slices"
	"strings"
	"testing"
)

func TestCharTokenizer(t *testing.T) {
	tok := NewCharTokenizer("banana é日\n")
	if got, want := string(tok.symbols), "\n abné日"; got != want {
		t.Fatalf("symbols %q, want %q", got, want)
	}
	tokens, err := tok.Encode("nab日")
	if err != nil || !slices.Equal(tokens, []int32{4, 2, 3, 6}) {
		t.Fatalf("encoded as %v, %v", tokens, err)
	}
	if got := tok.Decode(tokens); got != "nab日" {
		t.Errorf("decoded as %q", got)
	}
	if got := tok.Decode([]int32{2, 7, -1}); got != "a\uFFFD\uFFFD" {
		t.Errorf("tokens outside the vocabulary decode as %q", got)
	}
}

func TestUnknownCharacterIsNamed(t *testing.T) {
	lower := NewCharTokenizer("abcdefghijklmnopqrstuvwxyz ")
	for _, c := range []struct{ text, want string }{
		{"Queen", `character 'Q' at position 0 is not in the tokenizer's 27 symbols ('q' is)`},
		{"is 5", `character '5' at position 3 is not in the tokenizer's 27 symbols`},
		{"a\nb", `character '\n' at position 1 is not in the tokenizer's 27 symbols`},
		{"aé", `character 'é' at position 1 is not in the tokenizer's 27 symbols`},
		{"ab\xff", `byte 0xff at position 2 is not UTF-8`},
	} {
		if _, err := lower.Encode(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestByteTokenizer(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	tokens, err := ByteTokenizer{}.Encode(string(all))
	if err != nil || tokens[0] != 0 || tokens[255] != 255 {
		t.Fatalf("encoded as %v, %v", tokens, err)
	}
	if got := (ByteTokenizer{}).Decode(tokens); got != string(all) {
		t.Error("bytes do not come back")
	}
}

func TestLoadTokenizerRefuses(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `{"kind":"char"}`, `{"kind":"char","symbols":""}`,
		`{"kind":"char","symbols":"aa"}`, `{"kind":"char","symbols":"ba"}`,
		`{"kind":"byte","symbols":"ab"}`, `{"kind":"gpt2"}`, `{"kind":"byte"} x`,
		`{"kind":"byte","more":1}`, `{"kind":"byte"`, `{"kind":"char","symbols":3}`,
	} {
		if tok, err := LoadTokenizer([]byte(text)); err == nil {
			t.Errorf("%s was taken for a %s tokenizer", text, tok.Name())
		} else if !strings.HasPrefix(err.Error(), "read tokenizer: ") {
			t.Errorf("%s: %v does not say what was read", text, err)
		}
	}
}

func FuzzCharTokenizerRoundTrip(f *testing.F) {
	f.Add("hello, world")
	f.Add("\x00\u2028\"\\é日\U0001f600\ufffd")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		if text == "" {
			return
		}
		tok := NewCharTokenizer(text)
		saved, err := tok.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := LoadTokenizer(saved)
		if err != nil {
			t.Fatalf("%s: %v", saved, err)
		}
		tokens, err := loaded.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Decode(tokens); got != text {
			t.Fatalf("%q comes back as %q", text, got)
		}
	})
}

func FuzzLoadTokenizer(f *testing.F) {
	f.Add([]byte(`{"kind":"byte"}`))
	f.Add([]byte(`{"kind":"char","symbols":"abc"}`))
	f.Add([]byte(`{"kind":"char","symbols":"\ud800"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		tok, err := LoadTokenizer(text)
		if err != nil {
			return
		}
		saved, err := tok.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := LoadTokenizer(saved)
		if err != nil {
			t.Fatal(err)
		}
		if again.VocabSize() != tok.VocabSize() || again.Name() != tok.Name() {
			t.Fatalf("%s changes on the way through %s", text, saved)
		}
		for token := range int32(tok.VocabSize()) {
			if one := []int32{token}; again.Decode(one) != tok.Decode(one) {
				t.Fatalf("token %d changes on the way through %s", token, saved)
			}
		}
	})
}

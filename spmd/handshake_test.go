package spmd

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

func shakeHands(t *testing.T, dialer, listener []byte, c claim, judge func(claim) byte) (dial, accept error, got claim) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error)
	go func() {
		err := greet(a, dialer, c)
		a.Close()
		done <- err
	}()
	got, accept = admit(b, listener, judge)
	b.Close()
	return <-done, accept, got
}

func TestHandshake(t *testing.T) {
	welcome := func(claim) byte { return verdictWelcome }
	c := claim{generation: 3, token: newToken(), from: 2, lane: 1}
	if dial, accept, got := shakeHands(t, []byte("a"), []byte("a"), c, welcome); dial != nil || accept != nil || got != c {
		t.Errorf("friends: %v, %v, %+v", dial, accept, got)
	}
	judged := func(claim) byte { t.Error("a stranger's claim was read"); return verdictWelcome }
	if dial, accept, _ := shakeHands(t, []byte("a"), []byte("b"), c, judged); !errors.Is(dial, errStranger) || accept == nil {
		t.Errorf("strangers: %v, %v", dial, accept)
	}
	old := func(claim) byte { return verdictGeneration }
	if dial, accept, _ := shakeHands(t, []byte("a"), []byte("a"), c, old); !errors.Is(dial, errGeneration) || !errors.Is(accept, errGeneration) {
		t.Errorf("another generation: %v, %v", dial, accept)
	}
}

// TestHandshakeReflected sends a listener's own proof back to it.
func TestHandshakeReflected(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() {
		defer a.Close()
		hello := append([]byte(greeting), newNonce()...)
		_, _ = a.Write(hello)
		answer := make([]byte, nonceSize+proofSize)
		_, _ = io.ReadFull(a, answer)
		_, _ = a.Write(make([]byte, claimSize))
		_, _ = a.Write(answer[nonceSize:])
		_, _ = io.Copy(io.Discard, a)
	}()
	if _, err := admit(b, []byte("a"), func(claim) byte { return verdictWelcome }); !errors.Is(err, errStranger) {
		t.Errorf("got %v", err)
	}
	b.Close()
}

// TestJudge holds the listener's verdicts.
func TestJudge(t *testing.T) {
	token := newToken()
	cards := []card{{Token: token}, {Token: newToken()}}
	m := &meeting{site: &site{config: Config{Generation: 2}, card: cards[0]}, cards: cards, wanted: map[claim]bool{}}
	good := m.claim(0, 1, 0)
	m.wanted[good] = true
	for _, c := range []struct {
		name    string
		change  func(*claim)
		verdict byte
	}{
		{"older", func(c *claim) { c.generation = 1 }, verdictGeneration},
		{"astray", func(c *claim) { c.token = newToken() }, verdictToken},
		{"unexpected rank", func(c *claim) { c.from = 7 }, verdictRank},
		{"unexpected lane", func(c *claim) { c.lane = 5 }, verdictRank},
		{"good", func(*claim) {}, verdictWelcome},
		{"twice", func(*claim) {}, verdictRank},
	} {
		claim := good
		c.change(&claim)
		if got := m.judge(claim); got != c.verdict {
			t.Errorf("%s: verdict %d instead of %d", c.name, got, c.verdict)
		}
	}
}

// script is a connection whose peer says fixed bytes.
type script struct {
	io.Reader
	io.Writer
}

func FuzzAdmit(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte(greeting), make([]byte, nonceSize+claimSize+proofSize)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := admit(script{bytes.NewReader(b), io.Discard}, []byte("a"), func(claim) byte { return verdictWelcome }); err == nil {
			t.Error("admitted without a proof")
		}
	})
}

func FuzzHeader(f *testing.F) {
	var b [line]byte
	header{kind: kindReduce, op: Max, dtype: int64Type, root: -3, sequence: 9, count: 8, size: 64}.put(b[:])
	f.Add(b[:])
	f.Add([]byte("spmd"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHeader(b)
		if err != nil {
			return
		}
		var again [line]byte
		h.put(again[:])
		if back, err := parseHeader(again[:]); err != nil || back != h {
			t.Errorf("%+v became %+v, %v", h, back, err)
		}
		_ = h.String()
	})
}

func FuzzFrame(f *testing.F) {
	var b [frameSize]byte
	frame{kind: frameData, lane: 1, length: 128, sequence: 5}.put(b[:])
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		var b [frameSize]byte
		copy(b[:], in)
		got, err := parseFrame(b, 1, 5)
		if err == nil && (got.length > maxFrame || got.kind == frameData && got.length%line != 0 || got.lane != 1 || got.sequence != 5) {
			t.Errorf("accepted %+v", got)
		}
	})
}

func FuzzCard(f *testing.F) {
	f.Add([]byte(`{"host":"h","pid":3,"fd":4,"nonce":"ab","addresses":["1.2.3.4:5"],"token":"0123456789abcdef0123456789abcdef"}`))
	f.Add([]byte(`{"error":"no"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCard(b)
		if err == nil && (c.Error != "" || c.Nonce != "" && c.PID <= 0 || len(c.Addresses) > 0 && len(c.Token) != tokenLength) {
			t.Errorf("accepted %+v", c)
		}
	})
}

package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// samples has one request of every verb.
func samples() []request {
	return []request{
		{op: opSet, id: 1, keys: []string{"k"}, value: []byte("v")},
		{op: opSet, id: 0xffffffff, keys: []string{""}, value: []byte{}},
		{op: opGet, id: 2, keys: []string{"a/b"}},
		{op: opAdd, id: 3, keys: []string{"n"}, delta: -7},
		{op: opCompareAndSet, id: 4, keys: []string{"k"}, hasOld: true, old: []byte("o"), value: []byte("n")},
		{op: opCompareAndSet, id: 5, keys: []string{"k"}, old: []byte{}, value: []byte("n")},
		{op: opDelete, id: 6, keys: []string{"k"}},
		{op: opWait, id: 7, keys: []string{"a", "", "c"}},
		{op: opWait, id: 8},
		{op: opWatch, id: 9, keys: []string{"k"}, after: 1 << 63},
		{op: opKeys, id: 10, keys: []string{"p/"}},
		{op: opCancel, id: 11},
	}
}

func body(t testing.TB, encode func() ([]byte, error)) []byte {
	t.Helper()
	frame, err := encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := readFrame(bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRequestsSurviveTheWire(t *testing.T) {
	for _, want := range samples() {
		got, err := parseRequest(body(t, want.encode))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("sent %+v, got %+v, %v", want, got, err)
		}
	}
}

func TestResponsesSurviveTheWire(t *testing.T) {
	for _, want := range []response{
		{id: 1, value: []byte{}},
		{id: 2, failed: "no", value: []byte{}},
		{id: 3, yes: true, value: []byte("x"), number: -1, revision: 9, keys: []string{"a", ""}},
		{id: 4, present: true, value: []byte("y")},
	} {
		got, err := parseResponse(body(t, want.encode))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("sent %+v, got %+v, %v", want, got, err)
		}
	}
}

// TestEveryPrefixIsRefused cuts each message at each byte.
func TestEveryPrefixIsRefused(t *testing.T) {
	for _, r := range samples() {
		b := body(t, r.encode)
		for n := range b {
			if _, err := parseRequest(b[:n]); err == nil {
				t.Errorf("%+v cut to %d of %d bytes was accepted", r, n, len(b))
			}
		}
		if _, err := parseRequest(append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%+v with a byte too many was accepted", r)
		}
	}
}

func TestFrameLimits(t *testing.T) {
	for _, n := range []uint32{0, MaxFrame + 1, 1 << 31, 1<<32 - 1} {
		head := binary.BigEndian.AppendUint32(nil, n)
		if _, err := readFrame(bytes.NewReader(head)); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("frame of %d bytes: %v, want it refused by its length", n, err)
		}
	}
	if _, err := readFrame(strings.NewReader("\x00\x00\x00\x05abc")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short frame: %v", err)
	}
	if _, err := (request{op: opSet, keys: []string{"k"}, value: make([]byte, MaxFrame)}).encode(); err == nil {
		t.Error("a value that no frame holds was encoded")
	}
	if _, err := (request{op: opGet, keys: []string{strings.Repeat("k", MaxKey+1)}}).encode(); err == nil {
		t.Error("an overlong key was encoded")
	}
}

// FuzzRequest checks that what parses is exactly what encodes to the same bytes.
func FuzzRequest(f *testing.F) {
	for _, r := range samples() {
		f.Add(body(f, r.encode))
	}
	f.Add([]byte{byte(opWait), 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRequest(b)
		if err != nil {
			return
		}
		if got := body(t, r.encode); !bytes.Equal(got, b) {
			t.Errorf("%x parses as %+v, which encodes as %x", b, r, got)
		}
	})
}

// FuzzResponse is FuzzRequest for what a client reads.
func FuzzResponse(f *testing.F) {
	f.Add(body(f, response{id: 3, yes: true, value: []byte("x"), keys: []string{"a"}}.encode))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseResponse(b)
		if err != nil {
			return
		}
		if got := body(t, r.encode); !bytes.Equal(got, b) {
			t.Errorf("%x parses as %+v, which encodes as %x", b, r, got)
		}
	})
}

package snapshot

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// headerFile is a file with this header and so many bytes of values.
func headerFile(head string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(b, head...), make([]byte, values)...)
}

const goodHeader = `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"c":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}`

// badHeaders are told apart by a part of the error.
var badHeaders = map[string][]byte{
	"too short":                                 {1, 2, 3},
	"of a file of 8":                            binary.LittleEndian.AppendUint64(nil, 1<<40),
	"claims 18446744073709551615 bytes":         binary.LittleEndian.AppendUint64(nil, 1<<64-1),
	"claims 3 bytes of a file of 10":            headerFile(`{} `, 0)[:10],
	"no JSON object":                            headerFile(`[]`, 0),
	"unexpected end":                            headerFile(`{"a":`, 0),
	"dtype":                                     headerFile(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 4),
	"from 0":                                    headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
	"want 2 values":                             headerFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
	"from 4":                                    headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"bytes 4 to 0":                              headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4),
	"end at byte 4, the file at 8":              headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8),
	"end at byte 4, the file at 2":              headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 2),
	"unknown field":                             headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4),
	"of shape [-1]":                             headerFile(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
	"cannot unmarshal number 1.5":               headerFile(`{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}`, 4),
	`"null": want a shape`:                      headerFile(`{"null":{"dtype":"F32","shape":null,"data_offsets":[0,4]}}`, 4),
	`"one": want a shape`:                       headerFile(`{"one":{"dtype":"F32","shape":[0],"data_offsets":[0]}}`, 0),
	`"three": want a shape`:                     headerFile(`{"three":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}`, 4),
	`"no": want a shape`:                        headerFile(`{"no":{}}`, 0),
	"[4611686018427387904 4611686018427387904]": headerFile(`{"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}}`, 0),
}

func TestHeaders(t *testing.T) {
	good := headerFile(goodHeader, 8)
	entries, data, err := readHeader(bytes.NewReader(good), int64(len(good)))
	if err != nil || len(entries) != 3 || data != int64(len(good)-8) || entries["c"].Offsets != [2]uint64{4, 8} {
		t.Errorf("entries %v, values from %d, %v", entries, data, err)
	}
	for want, b := range badHeaders {
		if _, _, err := readHeader(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: error %v, want %q", b, err, want)
		}
	}
}

// TestBadManifests have a right hash over a body that must not be trusted.
func TestBadManifests(t *testing.T) {
	sound := func() manifest {
		return manifest{Format: formatNumber, ChunkBytes: 4, Files: []file{{"a", 5, []string{"x", "y"}}}}
	}
	if text, err := sound().encode(); err != nil {
		t.Fatal(err)
	} else if _, err := decodeManifest(text); err != nil {
		t.Fatalf("the sound one: %v", err)
	}
	for want, change := range map[string]func(*manifest){
		"has format 2":       func(m *manifest) { m.Format = 2 },
		"make no sense":      func(m *manifest) { m.ChunkBytes = 0 },
		"numbers":            func(m *manifest) { m.Meta.Step = -1 },
		`"../a" of 5 bytes`:  func(m *manifest) { m.Files[0].Name = "../a" },
		"of -1 bytes":        func(m *manifest) { m.Files[0].Bytes = -1 },
		"2 hashes for a":     func(m *manifest) { m.Files[0].Bytes = 9 },
		"0 hashes for a":     func(m *manifest) { m.Files[0].Chunks = nil },
		"want 1":             func(m *manifest) { m.ChunkBytes = 1<<63 - 1 },
		"hashes for a, want": func(m *manifest) { m.Files[0].Bytes = 1<<63 - 1 },
	} {
		m := sound()
		change(&m)
		text, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	for _, b := range badHeaders {
		f.Add(b)
	}
	f.Add(headerFile(goodHeader, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, data, err := readHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		sum := data
		for name, e := range entries {
			if end := data + int64(e.Offsets[1]); end > int64(len(b)) || e.Offsets[0] > e.Offsets[1] {
				t.Errorf("tensor %q ends at %d of %d", name, end, len(b))
			}
			sum += int64(e.Offsets[1] - e.Offsets[0])
		}
		if sum != int64(len(b)) {
			t.Errorf("header and tensors have %d bytes of %d", sum, len(b))
		}
	})
}

// FuzzDecodeManifest fuzzes the body under a right hash, and the whole text.
func FuzzDecodeManifest(f *testing.F) {
	good, err := manifest{Format: formatNumber, Meta: Meta{Step: 1, Extra: []byte("{}")}, ChunkBytes: 4, Files: []file{{"a", 5, []string{"x", "y"}}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{}`))
	f.Add(bytes.TrimSuffix(good[bytes.Index(good, []byte(`"manifest":`))+11:], []byte("}\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		sealedText := []byte(`{"sha256":"` + hash(text) + `","manifest":` + string(text) + "}\n")
		for _, text := range [][]byte{text, sealedText} {
			m, err := decodeManifest(text)
			if err != nil {
				continue
			}
			if err := m.check(); err != nil {
				t.Errorf("%q is accepted, but: %v", text, err)
			}
			again, err := m.encode()
			if err != nil {
				t.Errorf("%q is accepted but cannot be written: %v", text, err)
			} else if _, err := decodeManifest(again); err != nil {
				t.Errorf("%q is accepted, but not when written as %q: %v", text, again, err)
			}
		}
	})
}

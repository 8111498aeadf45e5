package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// The format of a safetensors file: the length of a JSON header as a
// little-endian u64, the header, and the tensors without holes between them.

// maxHeader is the longest header that the format's own readers accept.
const maxHeader = 100 << 20

// entry is what the header says of one tensor.
type entry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"` // from the header's end
}

// header is the head of a file with these tensors, which it sorts by name. Its
// length is a multiple of 8, so that the values are aligned.
func header(tensors []Tensor) ([]byte, error) {
	slices.SortFunc(tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	var text bytes.Buffer
	text.WriteString(`{"__metadata__":{"format":"pt"}`)
	at := uint64(0)
	for i, t := range tensors {
		if n, ok := elements(t.Shape); !ok || n != len(t.Data) {
			return nil, fmt.Errorf("tensor %s has %d values, not those of shape %v", t.Name, len(t.Data), t.Shape)
		}
		if i > 0 && tensors[i-1].Name == t.Name || t.Name == "__metadata__" {
			return nil, fmt.Errorf("tensor name %q is taken", t.Name)
		}
		if !utf8.ValidString(t.Name) {
			return nil, fmt.Errorf("tensor name %q is not UTF-8", t.Name)
		}
		end := at + 4*uint64(len(t.Data))
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		body, err := json.Marshal(entry{"F32", append([]int{}, t.Shape...), [2]uint64{at, end}})
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		fmt.Fprintf(&text, ",%s:%s", name, body)
		at = end
	}
	text.WriteByte('}')
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(text.Len())), text.Bytes()...), nil
}

// elements is the number of values of a shape; false when it is no shape or too large.
func elements(shape []int) (int, bool) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/8/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// readHeader reads the head of a file of size bytes and checks that the tensors
// tile the rest of it. data is where the values begin.
func readHeader(r io.ReaderAt, size int64) (entries map[string]entry, data int64, err error) {
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, 0, fmt.Errorf("the file is too short for a safetensors header")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, 0, fmt.Errorf("the header claims %d bytes of a file of %d", n, size)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil {
		return nil, 0, fmt.Errorf("read the header: %w", err)
	}
	entries, err = parseHeader(text)
	if err != nil {
		return nil, 0, err
	}
	return entries, 8 + int64(n), tiles(entries, uint64(size)-8-n)
}

// parseHeader decodes the header's JSON.
func parseHeader(text []byte) (map[string]entry, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("the header is no JSON object: %w", err)
	}
	delete(raw, "__metadata__")
	entries := make(map[string]entry, len(raw))
	for name, body := range raw {
		var e struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&e); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		if e.Shape == nil || len(e.Offsets) != 2 {
			return nil, fmt.Errorf("tensor %q: want a shape and two data_offsets", name)
		}
		entries[name] = entry{e.DType, e.Shape, [2]uint64(e.Offsets)}
	}
	return entries, nil
}

// tiles checks that the tensors follow one another from 0 to size.
func tiles(entries map[string]entry, size uint64) error {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), strings.Compare(a, b))
	})
	at := uint64(0)
	for _, name := range names {
		e := entries[name]
		n, ok := elements(e.Shape)
		if e.DType != "F32" {
			return fmt.Errorf("tensor %q has dtype %q, want F32", name, e.DType)
		}
		if !ok || e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1]-at != 4*uint64(n) {
			return fmt.Errorf("tensor %q of shape %v has bytes %d to %d, want %d values from %d", name, e.Shape, e.Offsets[0], e.Offsets[1], n, at)
		}
		at = e.Offsets[1]
	}
	if at != size {
		return fmt.Errorf("the tensors end at byte %d, the file at %d", at, size)
	}
	return nil
}

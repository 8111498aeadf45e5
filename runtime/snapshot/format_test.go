package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSameBytesWhateverTheWorld compares the files that 1 to 4 ranks write.
func TestSameBytesWhateverTheWorld(t *testing.T) {
	var want map[string]string
	for ranks := 1; ranks <= 4; ranks++ {
		dir := t.TempDir()
		if err := writeAll(dir, ranks, disk{}, Keep{Newest: 1}, 5); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		paths, err := filepath.Glob(filepath.Join(dir, folderName(5), "*"))
		if err != nil || len(paths) != 5 {
			t.Fatalf("files %v, %v", paths, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			got[filepath.Base(p)] = string(b)
		}
		if ranks == 1 {
			want = got
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%d ranks write another %s", ranks, name)
			}
		}
	}
}

// TestSafetensors reads a file as the format's description says, without any
// code of the package.
func TestSafetensors(t *testing.T) {
	dir := t.TempDir()
	if err := writeAll(dir, 2, disk{}, Keep{Newest: 1}, 3); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, folderName(3), "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(b)
	var head map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &head); err != nil || n%8 != 0 {
		t.Fatalf("header of %d bytes: %v", n, err)
	}
	delete(head, "__metadata__")
	want := content(3).Tensors["model.safetensors"]
	if len(head) != len(want) {
		t.Errorf("%d tensors, want %d", len(head), len(want))
	}
	for _, x := range want {
		var e struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(head[x.Name], &e); err != nil || e.DType != "F32" || !slices.Equal(e.Shape, x.Shape) {
			t.Fatalf("%s: %+v, %v", x.Name, e, err)
		}
		var values bytes.Buffer
		if err := binary.Write(&values, binary.LittleEndian, x.Data); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(values.Bytes(), b[8+n+e.Offsets[0]:8+n+e.Offsets[1]]) {
			t.Errorf("%s has other values", x.Name)
		}
	}
}

// TestBeginCopies changes the tensors as soon as Begin has returned.
func TestBeginCopies(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWriter(dir, Keep{Newest: 2}, newGroups(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 2; step++ { // the second waits for the first
		c := content(step)
		if _, err := w.Begin(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		clear(c.Tensors["model.safetensors"][0].Data)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= 2; step++ {
		s, err := Open(filepath.Join(dir, folderName(step)))
		if err != nil {
			t.Fatal(err)
		}
		holds(t, s)
	}
}

// TestKeep holds which snapshots survive: the newest, and the best of all.
func TestKeep(t *testing.T) {
	losses := []float64{5, 1, 3, 3, 2, 4}
	for keep, want := range map[Keep][]int{
		{1, false}: {6}, {2, false}: {6, 5}, {1, true}: {6, 2}, {5, true}: {6, 5, 4, 3, 2}, {9, true}: {6, 5, 4, 3, 2, 1},
	} {
		dir := t.TempDir()
		w, err := NewWriter(dir, keep, newGroups(1)[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range losses {
			c := Content{Meta: Meta{Step: i + 1, ValLoss: &losses[i], Extra: []byte("{}")}, Blobs: map[string][]byte{"x": {1}}}
			if _, err := w.Begin(context.Background(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		list, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, info := range list {
			got = append(got, info.Step)
			if info.Best != (info.Step == 2 && slices.Contains(want, 2)) && slices.Contains(want, 2) {
				t.Errorf("%v: step %d best %v", keep, info.Step, info.Best)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v keeps %v, want %v", keep, got, want)
		}
	}
}

// TestArchive moves everything aside and deletes nothing.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	if aside, err := Archive(dir); aside != "" || err != nil {
		t.Errorf("nothing to move: %q, %v", aside, err)
	}
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 3}, 1, 2); err != nil {
		t.Fatal(err)
	}
	aside, err := Archive(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, _, _ := Newest(dir); s != nil {
		t.Errorf("step %d is still there", s.Step)
	}
	s, bad, err := Newest(aside)
	if err != nil || s == nil || s.Step != 2 || len(bad) > 0 {
		t.Fatalf("aside: %v %v %v", s, bad, err)
	}
	holds(t, s)
}

func TestParamsSHA256(t *testing.T) {
	h := sha256.New()
	for _, v := range []float32{3, 4, 1, 2} { // "a" before "b"
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	got := ParamsSHA256([]Tensor{{"b", []int{2}, []float32{1, 2}}, {"a", []int{2}, []float32{3, 4}}})
	if want := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := writeAll(dir, 1, disk{}, Keep{Newest: 1}, 1); err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(dir, folderName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string]Tensor{
		"tensor no is missing":                         {"no", []int{1}, make([]float32, 1)},
		"tensor m.wte has shape [7 11], want [11 7]":   {"m.wte", []int{11, 7}, make([]float32, 77)},
		"tensor m.wte has shape [7 11], want [7 11 1]": {"m.wte", []int{7, 11, 1}, make([]float32, 77)},
	} {
		if err := s.Load("optimizer.safetensors", []Tensor{x}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestBadContent(t *testing.T) {
	for want, c := range map[string]Content{
		"not those of shape [3]": {Tensors: map[string][]Tensor{"m": {{"a", []int{3}, make([]float32, 2)}}}},
		`"a" is taken`:           {Tensors: map[string][]Tensor{"m": {{"a", []int{1}, make([]float32, 1)}, {"a", []int{1}, make([]float32, 1)}}}},
		`"../x" cannot be`:       {Blobs: map[string][]byte{"../x": {1}}},
		`"manifest.json" cannot`: {Blobs: map[string][]byte{manifestName: {1}}},
	} {
		w, err := NewWriter(t.TempDir(), Keep{Newest: 1}, newGroups(1)[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Begin(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// headerFile is a file with this header and so many bytes of values.
func headerFile(head string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(b, head...), make([]byte, values)...)
}

var badHeaders = map[string][]byte{
	"too short":      {1, 2, 3},
	"claims":         binary.LittleEndian.AppendUint64(nil, 1<<40),
	"no JSON object": headerFile(`[]`, 0),
	"dtype":          headerFile(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 4),
	"from 0":         headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
	"want 2 values":  headerFile(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
	"from 4":         headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"end at byte 4":  headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8),
	"unknown field":  headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4),
	"of shape [-1]":  headerFile(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
	"of shape [4611686018427387904 4611686018427387904]": headerFile(`{"a":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,0]}}`, 0),
}

func TestBadHeaders(t *testing.T) {
	for want, b := range badHeaders {
		if _, _, err := readHeader(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: error %v, want %q", b, err, want)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	for _, b := range badHeaders {
		f.Add(b)
	}
	f.Add(headerFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, data, err := readHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for name, e := range entries {
			if end := data + int64(e.Offsets[1]); end > int64(len(b)) || e.Offsets[0] > e.Offsets[1] {
				t.Errorf("tensor %q ends at %d of %d", name, end, len(b))
			}
		}
	})
}

func FuzzDecodeManifest(f *testing.F) {
	good, err := manifest{Format: formatNumber, Meta: Meta{Step: 1, Extra: []byte("{}")}, ChunkBytes: 4, Files: []file{{"a", 5, []string{"x", "y"}}}}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{}`))
	f.Add([]byte(fmt.Sprintf(`{"sha256":%q,"manifest":{}}`, hash([]byte("{}")))))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decodeManifest(text)
		if err != nil {
			return
		}
		if again, err := m.encode(); err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is accepted but would be written as %q, %v", text, again, err)
		}
	})
}

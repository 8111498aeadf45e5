package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// largeContent spans several chunks of the true size, with odd ends.
func largeContent() Content {
	c := content(5, 0)
	x := make([]float32, 2*chunkBytes/4+12345)
	for i := range x {
		x[i] = float32(uint32(i) * 2654435761 >> 8)
	}
	c.Tensors["large.safetensors"] = []Tensor{{"x", []int{len(x)}, x}, {"y", []int{3}, x[:3]}, {"z", []int{len(x) - 5}, x[5:]}}
	c.Blobs["odd"] = bytes.Repeat([]byte("odd"), chunkBytes/3+1)
	return c
}

// folderOf reads all files of a snapshot.
func folderOf(t *testing.T, dir string, step int) map[string]string {
	t.Helper()
	got := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(dir, folderName(step), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(p)] = string(b)
	}
	return got
}

// TestSameBytesWhateverTheWorld compares the files that 1 to 4 ranks write, in
// chunks of the true size and in small ones.
func TestSameBytesWhateverTheWorld(t *testing.T) {
	for _, c := range []struct {
		chunk   int
		content Content
	}{{chunkBytes, largeContent()}, {smallChunk, content(5, 0)}, {1, Content{Meta: Meta{Step: 5}, Blobs: map[string][]byte{"x": {1, 2, 3}}}}} {
		var want map[string]string
		for size := 1; size <= 4; size++ {
			dir := t.TempDir()
			rs, err := open(size, dir, Keep{Newest: 1}, disk{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range rs {
				w.chunk = c.chunk
			}
			if _, errs := rs.write(c.content); slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
				t.Fatal(errs)
			}
			newestHolds(t, dir, c.content)
			got := folderOf(t, dir, 5)
			if size == 1 {
				want = got
			}
			if len(got) != len(c.content.Tensors)+len(c.content.Blobs)+1 || !maps.Equal(got, want) {
				t.Errorf("chunks of %d: %d ranks write other files", c.chunk, size)
			}
		}
	}
}

// TestSafetensors reads a file as the format's description says, without any
// code of the package.
func TestSafetensors(t *testing.T) {
	dir := t.TempDir()
	c := content(3, 0)
	scalar := []Tensor{{"scalar", nil, []float32{4}}, {`quoted "<&> 中`, []int{1, 2}, []float32{5, 6}}}
	c.Tensors["names.safetensors"] = scalar
	mustWrite(t, dir, 2, c)
	files := folderOf(t, dir, 3)
	for name, want := range c.Tensors {
		head, values := minimalRead(t, []byte(files[name]))
		if len(head) != len(want) {
			t.Errorf("%s: %d tensors, want %d", name, len(head), len(want))
		}
		covered := 0
		for _, x := range want {
			var e struct {
				DType   string    `json:"dtype"`
				Shape   []float64 `json:"shape"`
				Offsets []int     `json:"data_offsets"`
			}
			if err := json.Unmarshal(head[x.Name], &e); err != nil || e.DType != "F32" || e.Shape == nil || len(e.Offsets) != 2 {
				t.Fatalf("%s: %s: %s, %v", name, x.Name, head[x.Name], err)
			}
			if !slices.EqualFunc(e.Shape, x.Shape, func(a float64, b int) bool { return a == float64(b) }) {
				t.Errorf("%s: %s has shape %v", name, x.Name, e.Shape)
			}
			got := make([]float32, (e.Offsets[1]-e.Offsets[0])/4)
			if err := binary.Read(bytes.NewReader(values[e.Offsets[0]:e.Offsets[1]]), binary.LittleEndian, got); err != nil || !slices.Equal(got, x.Data) {
				t.Errorf("%s: %s has other values, %v", name, x.Name, err)
			}
			covered += e.Offsets[1] - e.Offsets[0]
		}
		if covered != len(values) {
			t.Errorf("%s: tensors cover %d bytes of %d", name, covered, len(values))
		}
	}
}

// TestAlignment holds that values begin at multiples of 8 bytes.
func TestAlignment(t *testing.T) {
	for n := 1; n <= 8; n++ {
		head, err := header([]Tensor{{strings.Repeat("a", n), []int{1}, []float32{1}}})
		if err != nil || len(head)%8 != 0 || binary.LittleEndian.Uint64(head) != uint64(len(head)-8) {
			t.Errorf("a name of %d letters: header of %d bytes, %v", n, len(head), err)
		}
	}
}

// minimalRead splits a safetensors file.
func minimalRead(t *testing.T, b []byte) (head map[string]json.RawMessage, values []byte) {
	n := binary.LittleEndian.Uint64(b)
	if err := json.Unmarshal(b[8:8+n], &head); err != nil || n%8 != 0 || b[8] != '{' {
		t.Fatalf("header of %d bytes: %v", n, err)
	}
	delete(head, "__metadata__")
	return head, b[8+n:]
}

func TestParamsSHA256(t *testing.T) {
	h := sha256.New()
	for _, v := range []float32{3, 4, 1, 2} { // "a" before "b"
		if err := binary.Write(h, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	given := []Tensor{{"b", []int{2}, []float32{1, 2}}, {"none", []int{0}, nil}, {"a", []int{2}, []float32{3, 4}}}
	if got, want := ParamsSHA256(given), hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if given[0].Name != "b" {
		t.Error("the caller's tensors were sorted")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 1, content(1, 0))
	s, err := Open(filepath.Join(dir, folderName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for want, x := range map[string]Tensor{
		"tensor no is missing":                         {"no", []int{1}, make([]float32, 1)},
		"tensor m.wte has shape [7 11], want [11 7]":   {"m.wte", []int{11, 7}, make([]float32, 77)},
		"tensor m.wte has shape [7 11], want [7 11 1]": {"m.wte", []int{7, 11, 1}, make([]float32, 77)},
		"cannot be read into 76 values":                {"m.wte", []int{7, 11}, make([]float32, 76)},
	} {
		if err := s.Load("optimizer.safetensors", []Tensor{x}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, name := range []string{"no.safetensors", "config.json", "empty"} {
		if err := s.Load(name, nil); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := s.Blob("no.json"); err == nil || !strings.Contains(err.Error(), "has no file no.json") {
		t.Errorf("error %v", err)
	}
}

func TestBadContent(t *testing.T) {
	one := []float32{1}
	tensors := func(ts ...Tensor) Content { return Content{Tensors: map[string][]Tensor{"m": ts}} }
	blob := func(name string) Content { return Content{Blobs: map[string][]byte{name: {1}}} }
	both := tensors()
	both.Blobs = blob("m").Blobs
	for want, c := range map[string]Content{
		"not those of shape [3]":            tensors(Tensor{"a", []int{3}, one}),
		"not those of shape [-1]":           tensors(Tensor{"a", []int{-1}, nil}),
		`"a" is taken`:                      tensors(Tensor{"a", []int{1}, one}, Tensor{"a", []int{1}, one}),
		`"__metadata__" is taken`:           tensors(Tensor{"__metadata__", []int{1}, one}),
		`"\xff" is not UTF-8`:               tensors(Tensor{"\xff", []int{1}, one}),
		`"../x" cannot be`:                  blob("../x"),
		`".x" cannot be`:                    blob(".x"),
		`"" cannot be`:                      blob(""),
		`"x\xff" cannot be`:                 blob("x\xff"),
		`"manifest.json" cannot`:            blob(manifestName),
		`"m" cannot be`:                     both,
		"cannot be of step -1":              {Meta: Meta{Step: -1}},
		`extra data is not JSON: "{\"a\":"`: {Meta: Meta{Extra: []byte(`{"a":`)}},
	} {
		dir := t.TempDir()
		rs, err := open(1, dir, Keep{Newest: 1}, disk{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rs[0].Begin(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if err := rs[0].Close(); err != nil {
			t.Error(err)
		}
		has(t, dir)
	}
}

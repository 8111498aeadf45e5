package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// chunkBytes is the size of a chunk: large enough that hashes are few, small
// enough that shares are even.
const chunkBytes = 4 << 20

// piece is a run of bytes in memory.
type piece []byte

// layout is a file as the pieces of which it consists, in order.
type layout struct {
	name   string
	size   int64
	pieces []piece
}

// layouts orders a content's files by name, the same on every rank.
func layouts(c Content) ([]layout, error) {
	var files []layout
	for name, tensors := range c.Tensors {
		tensors = slices.Clone(tensors)
		head, err := header(tensors)
		if err != nil {
			return nil, fmt.Errorf("lay out %s: %w", name, err)
		}
		l := layout{name: name, size: int64(len(head)), pieces: []piece{head}}
		for _, t := range tensors {
			b := bytesOf(t.Data)
			l.pieces = append(l.pieces, b)
			l.size += int64(len(b))
		}
		files = append(files, l)
	}
	for name, blob := range c.Blobs {
		files = append(files, layout{name: name, size: int64(len(blob)), pieces: []piece{blob}})
	}
	slices.SortFunc(files, func(a, b layout) int { return strings.Compare(a.name, b.name) })
	for i, f := range files {
		if !plainName(f.name) || i > 0 && files[i-1].name == f.name {
			return nil, fmt.Errorf("%q cannot be the name of one of the snapshot's files", f.name)
		}
	}
	return files, nil
}

// plainName keeps files inside the folder and off the manifest, and their names
// the same when the manifest's JSON is read back.
func plainName(name string) bool {
	return name != "" && name != manifestName && !strings.ContainsAny(name, "/\x00") && name[0] != '.' && utf8.ValidString(name)
}

// bytesOf views values as their bytes. All machines that this runs on store
// float32 as safetensors wants it: little-endian (checked in init).
func bytesOf(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
}

func init() {
	one := []float32{1}
	if bytesOf(one)[3] != 0x3f {
		panic("snapshot: big-endian machines are not supported")
	}
}

// copyTo copies the file's bytes from off on into dst.
func (l layout) copyTo(dst []byte, off int64) {
	for _, p := range l.pieces {
		if off >= int64(len(p)) {
			off -= int64(len(p))
			continue
		}
		n := copy(dst, p[off:])
		dst, off = dst[n:], 0
		if len(dst) == 0 {
			return
		}
	}
}

// chunk is one chunk of one file.
type chunk struct {
	file int
	off  int64
	n    int
}

// chunks cuts all files; an empty file has none.
func chunks(files []layout, size int) []chunk {
	var out []chunk
	for i, f := range files {
		for off := int64(0); off < f.size; off += int64(size) {
			out = append(out, chunk{i, off, int(min(int64(size), f.size-off))})
		}
	}
	return out
}

// share is the part of all chunks that a rank writes.
func share(all []chunk, rank, size int) []chunk {
	return all[len(all)*rank/size : len(all)*(rank+1)/size]
}

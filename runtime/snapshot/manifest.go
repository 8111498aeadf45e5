package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

const (
	manifestName = "manifest.json"
	maxManifest  = 64 << 20
	formatNumber = 1
)

// manifest describes a snapshot's files completely.
type manifest struct {
	Format     int    `json:"format"`
	Meta       Meta   `json:"meta"`
	ChunkBytes int    `json:"chunk_bytes"`
	Files      []file `json:"files"`
}

// file is one of them: its size and the SHA-256 of each chunk, in hex.
type file struct {
	Name   string   `json:"name"`
	Bytes  int64    `json:"bytes"`
	Chunks []string `json:"chunks"`
}

// bytes is the size of all files.
func (m manifest) bytes() int64 {
	sum := int64(0)
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
}

// sealed is the manifest as it stands on disk: the body's own bytes are hashed,
// so that a flipped bit in it shows as well.
type sealed struct {
	SHA256 string          `json:"sha256"`
	Body   json.RawMessage `json:"manifest"`
}

func (m manifest) encode() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	text, err := json.Marshal(sealed{hash(body), body})
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// decodeManifest reads and checks one.
func decodeManifest(text []byte) (manifest, error) {
	var (
		s sealed
		m manifest
	)
	if err := decodeStrictly(text, &s); err != nil {
		return m, err
	}
	if again, err := json.Marshal(s); err != nil || !bytes.Equal(append(again, '\n'), text) {
		return m, errors.New("it is not as it was written")
	}
	if hash(s.Body) != s.SHA256 {
		return m, errors.New("it differs from its own hash")
	}
	if err := decodeStrictly(s.Body, &m); err != nil {
		return m, err
	}
	return m, m.check()
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// check holds what a reader relies on.
func (m manifest) check() error {
	if m.Format != formatNumber {
		return fmt.Errorf("it has format %d, this program reads %d", m.Format, formatNumber)
	}
	if m.ChunkBytes < 1 || m.Meta.Step < 0 {
		return errors.New("its numbers make no sense")
	}
	for _, f := range m.Files {
		if !plainName(f.Name) || f.Bytes < 0 {
			return fmt.Errorf("it lists a file %q of %d bytes", f.Name, f.Bytes)
		}
		want := f.Bytes / int64(m.ChunkBytes)
		if f.Bytes%int64(m.ChunkBytes) != 0 {
			want++
		}
		if int64(len(f.Chunks)) != want {
			return fmt.Errorf("it has %d hashes for %s, want %d", len(f.Chunks), f.Name, want)
		}
	}
	return nil
}

// checked is m as it can be written. JSON has no NaN and no infinity: a run that
// diverges still gets its snapshots, without a loss.
func checked(m Meta) (Meta, error) {
	if m.Step < 0 {
		return m, fmt.Errorf("a snapshot cannot be of step %d", m.Step)
	}
	if len(m.Extra) > 0 && !json.Valid(m.Extra) {
		return m, fmt.Errorf("the snapshot's extra data is not JSON: %.40q", m.Extra)
	}
	if m.ValLoss != nil && (math.IsNaN(*m.ValLoss) || math.IsInf(*m.ValLoss, 0)) {
		m.ValLoss = nil
	}
	return m, nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ParamsSHA256 is the SHA-256, in hex, over the little-endian bytes of all
// tensors in the order of their names.
func ParamsSHA256(tensors []Tensor) string {
	sorted := sortedByName(tensors)
	h := sha256.New()
	for _, t := range sorted {
		h.Write(bytesOf(t.Data))
	}
	return hex.EncodeToString(h.Sum(nil))
}

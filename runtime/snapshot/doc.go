// Package snapshot keeps named float32 tensors and small files in folders that
// survive anything that happens while they are written.
//
// A snapshot of step N is the folder step-N of nine digits. Its files are laid
// out by their content alone; the bytes are cut in chunks of fixed size, and
// each rank writes and hashes its share of the chunks, so files are the same
// whatever the number of ranks. Everything is written into a temporary folder
// and fsynced; rank 0 then writes the manifest, with every chunk's hash and its
// own, and one rename makes all visible. What a reader finds under its final
// name is complete or was damaged later, which the hashes show.
package snapshot

import (
	"context"
	"encoding/json"
	"time"
)

// Group is how the ranks that write together talk. Its methods are collective:
// all ranks call them in the same order, from the writer's goroutine only. A
// group of Size 1 is never asked to talk.
type Group interface {
	Rank() int
	Size() int
	// Gather returns every rank's b, in order, on rank 0; nil elsewhere.
	Gather(ctx context.Context, b []byte) ([][]byte, error)
	// Broadcast returns rank 0's b everywhere.
	Broadcast(ctx context.Context, b []byte) ([]byte, error)
}

// Tensor is a named float32 array. Data is the caller's; its length is the
// product of Shape.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Meta says what a snapshot holds.
type Meta struct {
	Step      int             `json:"step"`  // completed optimizer steps
	Epoch     int             `json:"epoch"` // of the next sample
	Seed      uint64          `json:"seed"`
	JobHash   string          `json:"job_hash"`
	ModelHash string          `json:"model_hash"`
	ISA       string          `json:"isa"`        // that computed it
	World     int             `json:"world_size"` // that wrote it
	ValLoss   *float64        `json:"val_loss"`   // the newest evaluation's; nil before the first, and written as nil unless finite
	Time      time.Time       `json:"time"`
	Extra     json.RawMessage `json:"extra,omitempty"` // the writer's own; a JSON value
}

// Content is everything that goes into a snapshot, the same on every rank.
type Content struct {
	Meta    Meta
	Tensors map[string][]Tensor // file name to its tensors: safetensors files
	Blobs   map[string][]byte   // file name to its bytes
}

// Written describes a snapshot that is safe on disk.
type Written struct {
	Step  int
	Path  string
	Bytes int64
	Stall time.Duration // training waited
	Write time.Duration // in the background
}

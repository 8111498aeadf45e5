package train

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"ddp/spmd"
)

// pieceLen is the number of float32 values that travel in one message: 4 MiB.
const pieceLen = 1 << 20

// shareTag marks the messages of share.
const shareTag = 1

// castagnoli is the polynomial of CRC-32C (RFC 3720), which CPUs compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// share sends parameters and moments from the holders to the lacking ranks, one
// piece after the other, the pieces dealt out among the holders so that each
// sends alike. Afterwards every lacking rank compares the checksum of every
// piece with what every holder has. It returns how many bytes this rank got.
func (t *Trainer) share(ctx context.Context, holders, lacking []int) (received int, err error) {
	if len(lacking) == 0 {
		return 0, nil
	}
	pieces := t.pieces()
	sums := make([]int64, len(pieces))
	rank := t.world.Rank()
	gets := slices.Contains(lacking, rank)
	for i, p := range pieces {
		if !gets {
			sums[i] = checksum(p) // while the others still read
		}
		from := holders[i%len(holders)]
		switch {
		case gets:
			if err := spmd.Recv(ctx, t.world, p, from, shareTag); err != nil {
				return received, err
			}
			received += 4 * len(p)
			sums[i] = checksum(p) // while the cache has it
		case rank == from:
			for _, to := range lacking {
				if err := spmd.Send(ctx, t.world, p, to, shareTag); err != nil {
					return received, err
				}
			}
		}
	}
	return received, t.compare(ctx, sums, holders, lacking)
}

func checksum(p []float32) int64 { return int64(crc32.Checksum(bytesOf(p), castagnoli)) }

// pieces views the whole state.
func (t *Trainer) pieces() [][]float32 {
	m, v := t.opt.Moments()
	var out [][]float32
	for _, flat := range [][]float32{t.gpt.Params().Host(), m.Host(), v.Host()} {
		out = append(out, slices.Collect(slices.Chunk(flat, pieceLen))...)
	}
	return out
}

// compare makes sure that every lacking rank has, bit for bit, what every holder
// has; mine are the checksums of this rank's pieces.
func (t *Trainer) compare(ctx context.Context, mine []int64, holders, lacking []int) error {
	all := make([]int64, len(mine)*t.world.Size())
	if err := spmd.AllGather(ctx, t.world, all, mine); err != nil {
		return fmt.Errorf("compare checksums: %w", err)
	}
	of := func(rank int) []int64 { return all[rank*len(mine) : (rank+1)*len(mine)] }
	for _, r := range slices.Concat(holders[1:], lacking) {
		if !slices.Equal(of(r), of(holders[0])) {
			return &UnlikeError{holders[0], r}
		}
	}
	return nil
}

// UnlikeError says that two ranks hold different parameters or moments for the
// same step: a memory or transfer fault, which only a snapshot can undo.
type UnlikeError struct{ Rank, Other int }

func (e *UnlikeError) Error() string {
	return fmt.Sprintf("ranks %d and %d hold different states of the same step: memory or network corrupts data; the last snapshot is untouched", e.Rank, e.Other)
}

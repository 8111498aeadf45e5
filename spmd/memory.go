package spmd

import (
	"context"
	"sync"
)

// InMemory returns a World of n ranks within this process, for tests and for
// trying things out: element r is rank r, to be used by one goroutine of its
// own. Each must be closed.
func InMemory(n int) []*World {
	worlds := make([]*World, n)
	for r := range worlds {
		worlds[r] = newWorld(r, n)
		worlds[r].host = hostName()
		worlds[r].placeLocally(r, n)
	}
	if n == 1 {
		return worlds
	}
	h := &hub{children: map[hubKey]*birth{}}
	for r, m := range memoryMeshes(n) {
		worlds[r].mesh = m
		worlds[r].splits = h
	}
	return worlds
}

// memoryMeshes connects n ranks by rings that both ends share.
func memoryMeshes(n int) []*mesh {
	meshes := make([]*mesh, n)
	for r := range meshes {
		m := newMesh(r, n)
		m.mine = new(board)
		for _, l := range m.lanes {
			l.bell = newBell()
		}
		meshes[r] = m
	}
	for a, m := range meshes {
		for b, other := range meshes {
			if a == b {
				continue
			}
			m.peers[b] = &peer{board: other.mine}
			for l := range laneCount {
				m.lanes[l].links[b] = &link{peer: b, taken: other.lanes[l].bell, given: other.lanes[l].bell}
			}
		}
	}
	for l := range laneCount {
		for a := range meshes {
			for b := range a {
				ab, ba := meshes[a].lanes[l].links[b], meshes[b].lanes[l].links[a]
				ab.out, ba.out = newRing(ringCapacity[l]), newRing(ringCapacity[l])
				ab.in, ba.in = ba.out, ab.out
			}
		}
	}
	return meshes
}

// hub makes the children of in-memory Worlds: the first rank to come makes all
// ranks' meshes, the last takes the entry away.
type hub struct {
	mu       sync.Mutex
	children map[hubKey]*birth
}

type hubKey struct {
	parent *board // of the child's rank 0 in the parent
	nth    uint64 // the parent's sequence number at the split
}

type birth struct {
	meshes []*mesh
	left   int
}

func (h *hub) split(_ context.Context, w *World, nth uint64, rank int, members []int) (*World, error) {
	if rank < 0 {
		return nil, nil
	}
	n := len(members)
	child := newWorld(rank, n)
	child.placeLocally(rank, n)
	if n == 1 {
		return child, nil
	}
	key := hubKey{parent: w.boardOf(members[0]), nth: nth}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.children[key]
	if b == nil {
		b = &birth{meshes: memoryMeshes(n), left: n}
		h.children[key] = b
	}
	child.mesh, child.splits = b.meshes[rank], h
	if b.left--; b.left == 0 {
		delete(h.children, key)
	}
	return child, nil
}

// boardOf returns a rank's board, the own one included.
func (w *World) boardOf(rank int) *board {
	if rank == w.rank {
		return w.mesh.mine
	}
	return w.mesh.peers[rank].board
}

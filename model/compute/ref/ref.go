// Package ref is the reference back end: plain Go, every sum and every
// intermediate in float64, written to be read. Other back ends are held
// against it; it is far too slow to train with.
package ref

import "ddp/model/compute"

// Backend implements compute.Backend. It keeps no state.
type Backend struct{}

var _ compute.Backend = Backend{}

// New opens the reference.
func New() compute.Backend { return Backend{} }

// Name is "ref".
func (Backend) Name() string { return "ref" }

// ISA is "float64": how it computes, whatever the machine.
func (Backend) ISA() string { return "float64" }

// Alloc returns n zeroes, kept alive by the Buffer itself.
func (Backend) Alloc(n int) compute.Buffer { return compute.HostBuffer(aligned(n)) }

// Close does nothing: the garbage collector frees.
func (Backend) Close() {}

// Zero sets dst to 0.
func (Backend) Zero(dst compute.Buffer) { clear(dst.Host()) }

// Copy copies src over dst.
func (Backend) Copy(dst, src compute.Buffer) { copy(dst.Host(), src.Host()) }

// Add is dst += src.
func (Backend) Add(dst, src compute.Buffer) {
	d := dst.Host()
	for i, x := range src.Host() {
		d[i] += x
	}
}

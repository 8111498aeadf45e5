package ref

import "ddp/model/compute"

// DropoutGrad passes on the gradient of kept elements.
func (Backend) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	x, y := dx.Host(), dy.Host()
	for r := range m {
		for i := range c {
			x[r*c+i] = float32(float64(y[r*c+i]) * keptRow(drop, r, i, c))
		}
	}
}

// kept is the factor of an element: 0 where it is dropped.
func kept(drop compute.Dropout, sample, element int) float64 {
	if drop.P == 0 {
		return 1
	}
	if !drop.Keep(sample, element) {
		return 0
	}
	return 1 / (1 - float64(drop.P))
}

// keptRow is kept for channel i of row r, with RowsPer rows a sample.
func keptRow(drop compute.Dropout, r, i, c int) float64 {
	if drop.P == 0 {
		return 1
	}
	return kept(drop, r/drop.RowsPer, r%drop.RowsPer*c+i)
}

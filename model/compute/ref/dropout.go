package ref

import "ddp/model/compute"

// DropoutGrad passes on the gradient of kept elements.
func (Backend) DropoutGrad(dx, dy compute.Buffer, m, c int, drop compute.Dropout) {
	x, y := dx.Host(), dy.Host()
	for i := range m * c {
		x[i] = float32(droppedRow(float64(y[i]), drop, i/c, i%c, c))
	}
}

// dropped is x scaled where the element is kept, else 0 whatever x is.
func dropped(x float64, drop compute.Dropout, sample, element int) float64 {
	if !drop.Keep(sample, element) {
		return 0
	}
	return x / (1 - float64(drop.P))
}

// droppedRow is dropped for channel i of row r, with RowsPer rows a sample.
func droppedRow(x float64, drop compute.Dropout, r, i, c int) float64 {
	if drop.P == 0 {
		return x // RowsPer may be 0
	}
	return dropped(x, drop, r/drop.RowsPer, r%drop.RowsPer*c+i)
}

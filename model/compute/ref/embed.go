package ref

import "ddp/model/compute"

// Embed is out = dropout(wte[token] + wpe[position]).
func (Backend) Embed(out, wte, wpe compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	o, te, pe := out.Host(), wte.Host(), wpe.Host()
	for s := range b {
		for p := range t {
			row, token := s*t+p, int(tokens[s*t+p])
			for i := range c {
				x := float64(te[token*c+i]) + float64(pe[p*c+i])
				o[row*c+i] = float32(x * kept(drop, s, p*c+i))
			}
		}
	}
}

// EmbedGrad adds dout's share to the two tables.
func (Backend) EmbedGrad(dwte, dwpe, dout compute.Buffer, tokens []int32, b, t, c int, drop compute.Dropout) {
	dte, dpe, do := dwte.Host(), dwpe.Host(), dout.Host()
	sumTE, sumPE := widened(dte), widened(dpe)
	for s := range b {
		for p := range t {
			row, token := s*t+p, int(tokens[s*t+p])
			for i := range c {
				g := float64(do[row*c+i]) * kept(drop, s, p*c+i)
				sumTE[token*c+i] += g
				sumPE[p*c+i] += g
			}
		}
	}
	narrow(dte, sumTE)
	narrow(dpe, sumPE)
}

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

// widened is a copy in float64, to sum in.
func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// narrow rounds src into dst.
func narrow(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}

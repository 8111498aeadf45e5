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
				o[row*c+i] = float32(dropped(x, drop, s, p*c+i))
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
				g := dropped(float64(do[row*c+i]), drop, s, p*c+i)
				sumTE[token*c+i] += g
				sumPE[p*c+i] += g
			}
		}
	}
	narrow(dte, sumTE)
	narrow(dpe, sumPE)
}

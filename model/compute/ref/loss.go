package ref

import "ddp/model/compute"

// Logits is x·wᵀ.
func (Backend) Logits(logits, x, w compute.Buffer, m, c, v int) {
	inputGrad(x.Host(), w.Host(), m, v, c, func(i, j int, sum float64) { logits.Host()[i*v+j] = float32(sum) })
}

// LogitsGrad is dx = dlogits·w and dw (+)= dlogitsᵀ·x.
func (Backend) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	product(dlogits.Host(), w.Host(), nil, v, c, func(i, j int, sum float64) { dx.Host()[i*c+j] = float32(sum) }, m)
	sums := make([]float64, v*c)
	if accumulate {
		sums = widened(dw.Host())
	}
	dl, xs := dlogits.Host(), x.Host()
	for i := range m {
		for j := range v {
			for p := range c {
				sums[j*c+p] += float64(dl[i*v+j]) * float64(xs[i*c+p])
			}
		}
	}
	narrow(dw.Host(), sums)
}

// CrossEntropy is -log softmax(logits)[target] of each row.
func (Backend) CrossEntropy(loss, logits compute.Buffer, targets []int32, m, v int, grad bool) {
	for r := range m {
		row := logits.Host()[r*v : (r+1)*v]
		if targets[r] < 0 {
			loss.Host()[r] = 0
			if grad {
				clear(row)
			}
			continue
		}
		probs := widened(row)
		target := probs[targets[r]]
		loss.Host()[r] = float32(softmax(probs) - target)
		if grad {
			probs[targets[r]]--
			narrow(row, probs)
		}
	}
}

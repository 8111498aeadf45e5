package ref

import "ddp/model/compute"

// Logits is x·wᵀ.
func (Backend) Logits(logits, x, w compute.Buffer, m, c, v int) {
	narrow(logits.Host(), productT(x.Host(), w.Host(), m, c, v))
}

// LogitsGrad is dx = dlogits·w and dw (+)= dlogitsᵀ·x.
func (Backend) LogitsGrad(dx, dw, dlogits, x, w compute.Buffer, m, c, v int, accumulate bool) {
	narrow(dx.Host(), product(dlogits.Host(), w.Host(), nil, m, v, c))
	sum := make([]float64, v*c)
	if accumulate {
		sum = widened(dw.Host())
	}
	addTProduct(sum, dlogits.Host(), x.Host(), m, v, c)
	narrow(dw.Host(), sum)
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

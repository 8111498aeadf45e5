package ref

import (
	"math"
	"slices"

	"ddp/model/compute"
)

// head reads q, k and v of one head out of qkv[B,T,3C].
type head struct {
	qkv     []float32
	s, h    int // sample, head
	t, d, c int
}

// at is channel i of part (0 q, 1 k, 2 v) at position p.
func (x head) at(part, p, i int) float64 { return float64(x.qkv[x.index(part, p, i)]) }

func (x head) index(part, p, i int) int { return ((x.s*x.t+p)*3+part)*x.c + x.h*x.d + i }

// scores are query p's scaled products with keys 0 to p.
func (x head) scores(p int) []float64 {
	out := make([]float64, p+1)
	for k := range out {
		for i := range x.d {
			out[k] += x.at(0, p, i) * x.at(1, k, i)
		}
		out[k] /= math.Sqrt(float64(x.d))
	}
	return out
}

// drop is dropout of what query p takes from keys 0 to p.
func (x head) drop(values []float64, p int, drop compute.Dropout) {
	for k, v := range values {
		values[k] = dropped(v, drop, x.s, (x.h*x.t+p)*x.t+k)
	}
}

// softmax turns scores into probabilities and returns log(sum(exp)).
func softmax(scores []float64) float64 {
	most := math.Inf(-1)
	for _, s := range scores {
		most = math.Max(most, s)
	}
	sum := 0.0
	for i, s := range scores {
		scores[i] = math.Exp(s - most)
		sum += scores[i]
	}
	for i := range scores {
		scores[i] /= sum
	}
	return most + math.Log(sum)
}

// Attention is causal self-attention, one query at a time.
func (Backend) Attention(out, lse, qkv compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	for s := range b {
		for hd := range h {
			x := head{qkv.Host(), s, hd, t, d, h * d}
			for p := range t {
				probs := x.scores(p)
				lse.Host()[(s*h+hd)*t+p] = float32(softmax(probs))
				x.drop(probs, p, drop)
				for i := range d {
					sum := 0.0
					for k, prob := range probs {
						sum += prob * x.at(2, k, i)
					}
					out.Host()[(s*t+p)*h*d+hd*d+i] = float32(sum)
				}
			}
		}
	}
}

// AttentionGrad recomputes the probabilities and overwrites dqkv.
func (Backend) AttentionGrad(dqkv, dout, qkv, out, lse compute.Buffer, b, t, h, d int, drop compute.Dropout) {
	grad := make([]float64, len(dqkv.Host()))
	for s := range b {
		for hd := range h {
			x := head{qkv.Host(), s, hd, t, d, h * d}
			for p := range t {
				queryGrad(grad, x, dout.Host()[(s*t+p)*h*d+hd*d:][:d], p, drop)
			}
		}
	}
	narrow(dqkv.Host(), grad)
}

// queryGrad adds what query p contributes: with P the probabilities, dV = drop(P)ᵀ·dO,
// dP = drop(dO·Vᵀ) and dS = P*(dP - sum(P*dP)).
func queryGrad(grad []float64, x head, dout []float32, p int, drop compute.Dropout) {
	probs := x.scores(p)
	softmax(probs)
	used, dprobs := slices.Clone(probs), make([]float64, p+1)
	x.drop(used, p, drop)
	for k := range used {
		for i, do := range dout {
			dprobs[k] += float64(do) * x.at(2, k, i)
			grad[x.index(2, k, i)] += float64(do) * used[k]
		}
	}
	x.drop(dprobs, p, drop)
	dot := 0.0
	for k := range probs {
		dot += probs[k] * dprobs[k]
	}
	scale := 1 / math.Sqrt(float64(x.d))
	for k := range probs {
		ds := probs[k] * (dprobs[k] - dot) * scale
		for i := range x.d {
			grad[x.index(0, p, i)] += ds * x.at(1, k, i)
			grad[x.index(1, k, i)] += ds * x.at(0, p, i)
		}
	}
}

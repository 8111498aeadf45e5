package ref

import (
	"math"
	"math/rand/v2"
	"testing"

	"ddp/model/compute"
)

// matrix is dense and float64, for the textbook's attention.
type matrix [][]float64

func newMatrix(rows, columns int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

// times is a·b.
func (a matrix) times(b matrix) matrix {
	out := newMatrix(len(a), len(b[0]))
	for i := range out {
		for j := range out[i] {
			for k := range b {
				out[i][j] += a[i][k] * b[k][j]
			}
		}
	}
	return out
}

func (a matrix) transposed() matrix {
	out := newMatrix(len(a[0]), len(a))
	for i := range out {
		for j := range out[i] {
			out[i][j] = a[j][i]
		}
	}
	return out
}

// part cuts q, k or v of one head out of qkv[B,T,3,H,D].
func part(qkv []float32, which, sample, head, t, h, d int) matrix {
	out := newMatrix(t, d)
	for p := range t {
		for i := range d {
			out[p][i] = float64(qkv[(((sample*t+p)*3+which)*h+head)*d+i])
		}
	}
	return out
}

// textbook is softmax(mask(q·kᵀ/sqrt(d)))*dropout·v of one head with the whole
// [T,T] matrix, and log(sum(exp)) of its rows.
func textbook(q, k, v matrix, d int, keep func(query, key int) float64) (out matrix, lse []float64) {
	scores := q.times(k.transposed())
	for i, row := range scores {
		sum := 0.0
		for j := range row {
			row[j] = math.Exp(row[j] / math.Sqrt(float64(d)))
			if j > i {
				row[j] = 0
			}
			sum += row[j]
		}
		for j := range row {
			row[j] *= keep(i, j) / sum
		}
		lse = append(lse, math.Log(sum))
	}
	return scores.times(v), lse
}

func TestAttentionIsTheTextbooks(t *testing.T) {
	const b, n, h, d = 2, 9, 3, 5
	for _, drop := range drops {
		qkv := random(rand.New(rand.NewPCG(8, 8)), b*n*3*h*d)
		out, lse := zeroes(b*n*h*d), zeroes(b*h*n)
		New().Attention(out, lse, qkv, b, n, h, d, drop)
		for s := range b {
			for head := range h {
				cut := func(which int) matrix { return part(qkv.Host(), which, s, head, n, h, d) }
				keep := func(query, key int) float64 {
					if drop.P > 0 && !drop.Keep(s, (head*n+query)*n+key) {
						return 0
					}
					return 1 / (1 - float64(drop.P))
				}
				want, wantLSE := textbook(cut(0), cut(1), cut(2), d, keep)
				same(t, "lse", lse.Slice((s*h+head)*n, (s*h+head+1)*n), wantLSE...)
				for p := range n {
					at := (s*n+p)*h*d + head*d
					same(t, "out", out.Slice(at, at+d), want[p]...)
				}
			}
		}
	}
}

// TestAttentionOfEqualScores averages the values seen so far.
func TestAttentionOfEqualScores(t *testing.T) {
	out, lse := zeroes(3), zeroes(3)
	New().Attention(out, lse, of(0, 7, 1, 0, 8, 3, 0, 9, 8), 1, 3, 1, 1, compute.Dropout{})
	same(t, "out", out, 1, 2, 4)
	same(t, "lse", lse, 0, math.Log(2), math.Log(3))
}

package ref

import (
	"math"

	"ddp/model/compute"
)

// gelu is the activation (Hendrycks and Gimpel 2016).
func gelu(x float64, kind compute.GELU) float64 {
	if kind == compute.GELUExact {
		return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
	}
	return 0.5 * x * (1 + math.Tanh(tanhArgument(x)))
}

// geluGrad is its derivative.
func geluGrad(x float64, kind compute.GELU) float64 {
	if kind == compute.GELUExact {
		return 0.5*(1+math.Erf(x/math.Sqrt2)) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	}
	th := math.Tanh(tanhArgument(x))
	slope := math.Sqrt(2/math.Pi) * (1 + 3*0.044715*x*x)
	return 0.5*(1+th) + 0.5*x*(1-th*th)*slope
}

func tanhArgument(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

package conformance

import (
	"fmt"

	"ddp/model/compute"
)

// productShape is y[m,n] = x[m,k]·w[k,n] and its arguments.
type productShape struct {
	m, k, n int
}

func (s productShape) String() string    { return fmt.Sprintf("%dx%dx%d", s.m, s.k, s.n) }
func (s productShape) x() arg            { return in("x", s.m*s.k, normal(1, 1)) }
func (s productShape) w() arg            { return in("w", s.k*s.n, normal(2, 1)) }
func (s productShape) bias() arg         { return in("bias", s.n, normal(3, 1)) }
func (s productShape) dy() arg           { return in("dy", s.m*s.n, normal(4, 1)) }
func (s productShape) forward() float64  { return dot(s.k) }
func (s productShape) backward() float64 { return dot(max(s.m, s.n)) }
func (s productShape) draw(p float32) compute.Dropout {
	return draw(p, max(1, s.m/3)) // several samples, the last one shorter
}

// linearCases are all operations around one product.
func linearCases(m, k, n int) []testCase {
	s := productShape{m, k, n}
	list := productCases(m, k, n)
	list = append(list, s.withoutBias()...)
	list = append(list, s.geluCases()...)
	return append(list, s.residualCases()...)
}

// productCases are the plain product and its gradient.
func productCases(m, k, n int) []testCase {
	s := productShape{m, k, n}
	return []testCase{
		{op: "Linear", shape: s.String(), tolerance: s.forward(), scale: 1, args: []arg{out("y", m*n), s.x(), s.w(), s.bias()},
			call: func(b compute.Backend, v []compute.Buffer) { b.Linear(v[0], v[1], v[2], v[3], m, k, n) }},
		{op: "LinearGrad", shape: s.String(), tolerance: s.backward(), scale: 1,
			args: []arg{out("dx", m*k), out("dw", k*n), out("dbias", n), s.dy(), s.x(), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) { b.LinearGrad(v[0], v[1], v[2], v[3], v[4], v[5], m, k, n) }},
	}
}

func (s productShape) withoutBias() []testCase {
	m, k, n, none := s.m, s.k, s.n, compute.Buffer{}
	shape := s.String() + " without bias"
	return []testCase{
		{op: "Linear", shape: shape, tolerance: s.forward(), scale: 1, args: []arg{out("y", m*n), s.x(), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) { b.Linear(v[0], v[1], v[2], none, m, k, n) }},
		{op: "LinearGrad", shape: shape, tolerance: s.backward(), scale: 1,
			args: []arg{out("dx", m*k), out("dw", k*n), s.dy(), s.x(), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) { b.LinearGrad(v[0], v[1], none, v[2], v[3], v[4], m, k, n) }},
		{op: "LinearGELU", shape: shape, tolerance: s.forward() + 1e-6, scale: 1, args: []arg{out("y", m*n), out("pre", m*n), s.x(), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) {
				b.LinearGELU(v[0], v[1], v[2], v[3], none, m, k, n, compute.GELUTanh)
			}},
		{op: "LinearGELUGrad", shape: shape, tolerance: s.backward() + 2e-6, scale: 1,
			args: []arg{out("dpre", m*k), out("dw", k*n), s.dy(), in("act", m*k, normal(6, 1)), in("pre", m*k, normal(5, 2)), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) {
				b.LinearGELUGrad(v[0], v[1], none, v[2], v[3], v[4], v[5], m, k, n, compute.GELUTanh)
			}},
		{op: "LinearResidual", shape: shape, tolerance: s.forward(), scale: 1, args: []arg{out("y", m*n), in("residual", m*n, normal(7, 1)), s.x(), s.w()},
			call: func(b compute.Backend, v []compute.Buffer) {
				b.LinearResidual(v[0], v[1], v[2], v[3], none, m, k, n, compute.Dropout{})
			}},
	}
}

// geluCases have arguments of ordinary size, and from 1e-4 to 1e4, past where
// the cube and the exponential overflow in a careless form.
func (s productShape) geluCases() []testCase {
	var list []testCase
	for _, kind := range []compute.GELU{compute.GELUTanh, compute.GELUExact} {
		name := map[compute.GELU]string{compute.GELUTanh: "tanh", compute.GELUExact: "exact"}[kind]
		list = append(list,
			s.gelu(name, kind, s.x()), s.geluGrad(name, kind, normal(5, 2)),
			s.gelu(name+" 1e±4", kind, in("x", s.m*s.k, decades(1))), s.geluGrad(name+" 1e±4", kind, decades(5)))
	}
	return list
}

func (s productShape) gelu(name string, kind compute.GELU, x arg) testCase {
	m, k, n := s.m, s.k, s.n
	return testCase{op: "LinearGELU", shape: s.String() + " " + name, tolerance: s.forward() + 1e-6, scale: 1,
		args: []arg{out("y", m*n), out("pre", m*n), x, s.w(), s.bias()},
		call: func(b compute.Backend, v []compute.Buffer) { b.LinearGELU(v[0], v[1], v[2], v[3], v[4], m, k, n, kind) }}
}

func (s productShape) geluGrad(name string, kind compute.GELU, pre func(int) float32) testCase {
	m, k, n := s.m, s.k, s.n
	return testCase{op: "LinearGELUGrad", shape: s.String() + " " + name, tolerance: s.backward() + 2e-6, scale: 1,
		args: []arg{out("dpre", m*k), out("dw", k*n), out("dbias", n), s.dy(), in("act", m*k, normal(6, 1)), in("pre", m*k, pre), s.w()},
		call: func(b compute.Backend, v []compute.Buffer) {
			b.LinearGELUGrad(v[0], v[1], v[2], v[3], v[4], v[5], v[6], m, k, n, kind)
		}}
}

func (s productShape) residualCases() []testCase {
	m, k, n := s.m, s.k, s.n
	var list []testCase
	for _, p := range probabilities {
		d, shape, residual := s.draw(p), fmt.Sprintf("%v drop %v", s, p), normal(7, 1)
		list = append(list,
			testCase{op: "LinearResidual", shape: shape, tolerance: s.forward(), scale: 1,
				args: []arg{out("y", m*n), in("residual", m*n, residual), s.x(), s.w(), s.bias()},
				call: func(b compute.Backend, v []compute.Buffer) {
					b.LinearResidual(v[0], v[1], v[2], v[3], v[4], m, k, n, d)
				}},
			testCase{op: "LinearResidual", shape: shape + " in place", tolerance: s.forward(), scale: 1,
				args: []arg{inout("y", m*n, residual), s.x(), s.w(), s.bias()},
				call: func(b compute.Backend, v []compute.Buffer) {
					b.LinearResidual(v[0], v[0], v[1], v[2], v[3], m, k, n, d)
				}})
	}
	return list
}

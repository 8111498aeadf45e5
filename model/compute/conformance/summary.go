package conformance

// OpSummary is what all cases of one operation came to.
type OpSummary struct {
	Op            string
	Cases, Failed int
	MaxErr        float64 // of all cases, NaN when one was
	Worst         Result  // the first that failed, else the one nearest its tolerance
}

// Summary collects results by operation. The zero Summary is empty; its Add is
// a report for Run and Threads.
type Summary struct {
	ops []OpSummary
}

// Add counts one result.
func (s *Summary) Add(r Result) {
	o := s.of(r)
	o.Cases++
	o.MaxErr = worse(o.MaxErr, r.MaxErr)
	if o.Failed == 0 && (!r.Pass() || share(r) > share(o.Worst)) {
		o.Worst = r
	}
	if !r.Pass() {
		o.Failed++
	}
}

// Ops are the summaries in the order in which operations were first reported.
func (s *Summary) Ops() []OpSummary { return s.ops }

// of finds or begins the summary of r's operation.
func (s *Summary) of(r Result) *OpSummary {
	for i := range s.ops {
		if s.ops[i].Op == r.Op {
			return &s.ops[i]
		}
	}
	s.ops = append(s.ops, OpSummary{Op: r.Op, Worst: r})
	return &s.ops[len(s.ops)-1]
}

// share is how much of its tolerance a result takes.
func share(r Result) float64 {
	if r.Tolerance == 0 {
		return 0
	}
	return r.MaxErr / r.Tolerance
}

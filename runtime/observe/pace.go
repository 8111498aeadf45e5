package observe

import "time"

// pace says which steps get a plain line: the first, the last, each twentieth
// part of the way, and one after a while without any.
type pace struct {
	total   int // steps; 0: not known
	begun   bool
	step    int // the newest seen
	next    int // the next mark on the way
	printed time.Time
}

// silence is how long a log stays without a line while there are steps.
const silence = 10 * time.Second

func (p *pace) due(at time.Time, step int) bool {
	back := step <= p.step // steps are done again
	p.step = step
	passed := p.total > 0 && step >= p.next
	if p.begun && !back && !passed && step != p.total && at.Sub(p.printed) < silence {
		return false
	}
	p.begun, p.printed = true, at
	if p.total > 0 {
		stride := max(1, p.total/20)
		p.next = step - step%stride + stride
	}
	return true
}

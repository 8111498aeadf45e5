package train

import "time"

// cadence decides when a snapshot is due. The clock's part is decided by rank 0
// alone and voted on; the rest is a pure function of the step.
type cadence struct {
	Cadence
	batch, epochLen int
	last            time.Time
}

func newCadence(c Cadence, batch, epochLen int, now time.Time) *cadence {
	return &cadence{Cadence: c, batch: batch, epochLen: epochLen, last: now}
}

// stepDue reports whether the snapshot after completed step is due by count.
func (c *cadence) stepDue(step int) bool {
	return c.EverySteps > 0 && step%c.EverySteps == 0 || c.EveryEpochs > 0 && c.epochDue(step)
}

// epochDue reports whether step was the first to complete a multiple of EveryEpochs.
func (c *cadence) epochDue(step int) bool {
	period := int64(c.epochLen) * int64(c.EveryEpochs)
	return int64(step)*int64(c.batch)/period > int64(step-1)*int64(c.batch)/period
}

// timeIsUp reports whether Every has passed since the last snapshot.
func (c *cadence) timeIsUp(now time.Time) bool { return c.Every > 0 && now.Sub(c.last) >= c.Every }

// taken notes that a snapshot was taken at now.
func (c *cadence) taken(now time.Time) { c.last = now }

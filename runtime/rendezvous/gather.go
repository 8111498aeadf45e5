package rendezvous

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ddp/runtime/elastic"
)

// Limits of a meeting.
type Limits struct {
	Least, Most int           // nodes beside the leading one; Least are needed
	Patience    time.Duration // until they are there
	LastCall    time.Duration // for more, once they are there
}

// TimeoutError says that too few nodes came.
type TimeoutError struct {
	Came, Needed int // the leading one included
	After        time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%d of %d nodes have come within %v: are the others started, with this endpoint, and does a firewall stand between?", e.Came, e.Needed, e.After)
}

// Gather waits for the nodes that a job begins with and returns them by the
// places that they wish for. Those that come too late are left in the channel.
func Gather(ctx context.Context, guests <-chan elastic.Guest, limits Limits) ([]elastic.Guest, error) {
	var came []elastic.Guest
	patience := time.NewTimer(limits.Patience)
	defer patience.Stop()
	var lastCall <-chan time.Time
	for len(came) < limits.Most {
		if len(came) >= limits.Least && lastCall == nil {
			lastCall = time.After(limits.LastCall)
			patience.Stop()
		}
		select {
		case g := <-guests:
			came = append(came, g)
			continue
		case <-lastCall:
		case <-patience.C:
			return came, &TimeoutError{len(came) + 1, limits.Least + 1, limits.Patience}
		case <-ctx.Done():
			return came, context.Cause(ctx)
		}
		break
	}
	slices.SortStableFunc(came, func(a, b elastic.Guest) int { return a.Place - b.Place })
	return came, nil
}

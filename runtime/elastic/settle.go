package elastic

import (
	"fmt"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// settle decides what follows a generation of which nothing is left.
func (c *Control) settle(now time.Duration, why string) {
	c.do(why)
	c.due = 0
	culprit := c.ends.culprit()
	switch {
	case c.cancel:
		c.finish(launch.ExitFailed, "the job was cancelled")
	case c.ends.stuck > 0:
		c.blame(culprit)
		c.finish(launch.ExitFailed, fmt.Sprintf("%d processes cannot be killed", c.ends.stuck))
	case culprit == nil && c.anew && c.stop == 0:
		c.anew = false
		c.dismiss()
		c.gen++
		c.gather(now, "the members have changed")
	case culprit == nil && c.stop == 0:
		c.finish(launch.ExitOK, "all ranks are done")
	case culprit == nil && c.forced:
		c.finish(launch.ExitFailed, "the ranks were killed before they had stopped")
	case culprit == nil:
		c.finish(launch.ExitSignal(c.stop), "all ranks stopped")
	default:
		c.blame(culprit)
		c.afterFailure(now, culprit)
	}
}

func (c *Control) blame(e *ending) {
	if e != nil {
		c.out = append(c.out, Blame{c.gen, e.rank, e.node})
	}
}

// afterFailure ends the job or begins the next generation.
func (c *Control) afterFailure(now time.Duration, culprit *ending) {
	code := culprit.exit.Status()
	switch {
	case c.final(culprit):
		c.finish(code, fmt.Sprintf("exit code %d is final", code))
	case culprit.permanent:
		c.finish(launch.ExitFailed, "the rank says that another try would end the same way")
	case c.stop != 0 && culprit.afterStop:
		c.finish(launch.ExitFailed, "it happened while the ranks were stopping")
	case c.stop != 0:
		c.finish(launch.ExitSignal(c.stop), "a stop was asked for meanwhile")
	case c.recentRestarts(now) >= c.set.MaxRestarts && c.set.OwnCode && culprit.rank >= 0:
		c.finish(code, fmt.Sprintf("no restart is left of %s", c.budget()))
	case c.recentRestarts(now) >= c.set.MaxRestarts:
		c.finish(launch.ExitGaveUp, fmt.Sprintf("no restart is left of %s", c.budget()))
	default:
		c.restart(now)
	}
}

// restart begins the next generation.
func (c *Control) restart(now time.Duration) {
	c.restarts = append(c.restarts, now)
	c.dismiss()
	c.gen++
	c.ends, c.anew = endings{}, false
	c.gather(now, fmt.Sprintf("restart %d of %s", c.recentRestarts(now), c.budget()))
}

// Restarts is how many failures there were so far that a generation came after.
func (c *Control) Restarts() int { return len(c.restarts) }

// recentRestarts counts those within the window, now included.
func (c *Control) recentRestarts(now time.Duration) int {
	n := 0
	for _, at := range c.restarts {
		if c.set.Window == 0 || now-at < c.set.Window {
			n++
		}
	}
	return n
}

func (c *Control) budget() string {
	if c.set.Window == 0 {
		return fmt.Sprint(c.set.MaxRestarts)
	}
	return fmt.Sprintf("%d within %v", c.set.MaxRestarts, c.set.Window)
}

func (c *Control) finish(code int, why string) {
	c.phase = over
	c.do(why, Finish{code})
}

// signalled handles a signal to the launcher.
func (c *Control) signalled(now time.Duration, sig syscall.Signal) {
	if sig == syscall.SIGUSR1 {
		if c.phase == running || c.phase == suspecting || c.phase == pausing {
			c.do("it is for the ranks", Forward{c.gen, sig})
		} else {
			c.do("no rank runs that it would be for")
		}
		return
	}
	first := c.stop == 0
	if first {
		c.stop = sig
	}
	switch {
	case (c.phase == joining || c.phase == listening) && c.set.Live && c.gen > 0 && first:
		c.do("the ranks are asked as soon as they are together again")
	case (c.phase == joining || c.phase == listening) && c.set.Live && c.gen > 0:
		c.forced = true
		c.kill("a second signal")
	case c.phase == joining || c.phase == listening:
		c.finish(launch.ExitSignal(c.stop), "a stop was asked for and no rank runs")
	case c.phase == killing:
		c.do("the ranks are being killed already")
	case c.phase == suspecting:
		c.kill("a stop was asked for, and a rank has failed already")
	case first:
		c.askToStop(now, "the ranks are asked to stop")
	default:
		c.forced = true
		c.kill("a second signal")
	}
}

// askToStop lets the ranks end in their own way.
func (c *Control) askToStop(now time.Duration, why string) {
	c.phase, c.due = stopping, 0
	c.do(why, Forward{c.gen, syscall.SIGTERM})
	if c.set.Grace > 0 {
		c.due = now + c.set.Grace
	}
}

// expired handles the timer, unless it was set anew just when it rang.
func (c *Control) expired(now time.Duration) {
	if c.timer == 0 || now < c.timer {
		c.do("the timer was set anew meanwhile")
		return
	}
	c.timer = 0
	c.callBack(now)
	if c.due == 0 || now < c.due {
		return
	}
	c.due = 0
	switch c.phase {
	case joining:
		c.joinExpired(now)
	case suspecting:
		c.failTogether(now, "no culprit has ended")
	case stopping:
		c.forced = true
		c.kill(fmt.Sprintf("the ranks had %v to stop", c.set.Grace))
	}
}

// joinExpired goes on with the nodes that are there, or ends the job.
func (c *Control) joinExpired(now time.Duration) {
	if present := c.present(); len(present) >= c.set.MinNodes {
		c.form(now, present)
		return
	}
	for i, n := range c.nodes {
		if n.at < there {
			c.do(fmt.Sprintf("node %d is not there after %v", i, JoinTime), Blame{c.gen, -1, i})
			break
		}
	}
	c.finish(launch.ExitRendezvous, fmt.Sprintf("a job needs %d of its nodes", c.set.MinNodes))
}

// cancelled ends the job as fast as it can be ended cleanly.
func (c *Control) cancelled() {
	c.cancel = true
	switch {
	case c.alive(), c.set.Live && c.gen > 0 && c.phase != killing:
		c.kill("the job was cancelled")
	case c.phase == killing:
		c.do("the ranks are being killed already")
	default:
		c.finish(launch.ExitFailed, "the job was cancelled")
	}
}

package elastic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"ddp/runtime/launch"
)

// drainTime bounds the wait for output after everything that we know of has
// died: a process of another user may hold a pipe open.
const drainTime = time.Second

// crew is the rank processes of one node that live together. It serves one
// generation; where ranks get orders (see launch.Channel), it goes on to the
// next ones as long as any of them lives.
type crew struct {
	agent *agent
	oom   int // kills by the kernel before it began

	mu      sync.Mutex
	order   startOrder // of the generation at hand
	members []*member  // by local rank
	living  int        // members of which something is left
	sealed  bool       // nothing is left: no member can be added

	killOnce sync.Once
	hopeless chan struct{} // closed when killed processes had their time to die
	over     chan struct{} // closed when no member lives
	cleared  chan struct{} // closed when nothing is left at all
	wg       sync.WaitGroup
}

func newCrew(a *agent, o startOrder) *crew {
	c := &crew{agent: a, order: o, members: make([]*member, a.setup.Ranks), hopeless: make(chan struct{}), over: make(chan struct{}), cleared: make(chan struct{})}
	c.oom, _ = launch.OutOfMemoryKills()
	return c
}

// start starts all ranks and a goroutine that closes over.
func (c *crew) start() {
	c.mu.Lock()
	c.living++ // itself, until all are started
	c.fill()
	c.mu.Unlock()
	c.leave()
	go c.finish()
	if c.agent.setup.Live {
		c.wg.Go(c.watchLife)
	}
}

// join takes the crew into the next generation; false when none of it lives.
// Members that live get their new place, those that ended are replaced.
func (c *crew) join(o startOrder) bool {
	c.mu.Lock()
	if c.sealed {
		c.mu.Unlock()
		return false
	}
	c.living++
	defer c.leave()
	defer c.mu.Unlock()
	c.order = o
	for _, m := range c.members {
		if m != nil && !m.ended {
			c.place(m)
		}
	}
	c.fill()
	return true
}

// fill starts the members that are missing. c.mu is held.
func (c *crew) fill() {
	var pids []int
	for local, m := range c.members {
		if m == nil || m.ended {
			var err error
			if m, err = c.add(local); err != nil {
				c.agent.emit(unstarted(c.order, local, err))
				break // the others would fail the same way
			}
		}
		pids = append(pids, m.proc.PID())
	}
	c.agent.closeSocket() // rank 0 has its own
	if len(pids) == len(c.members) && !c.order.Warm {
		c.agent.emit(report{Up: &upReport{c.order.Gen, pids}})
	}
}

// add starts a member. c.mu is held.
func (c *crew) add(local int) (*member, error) {
	if err := launch.NeedFiles(c.files()); err != nil {
		return nil, err
	}
	c.agent.started++
	m := &member{crew: c, local: local, gen: c.order.Gen, rank: c.order.FirstRank + local,
		mark:      fmt.Sprintf("%s%d:", c.agent.setup.mark(), c.agent.started),
		errorFile: filepath.Join(c.agent.dir, fmt.Sprintf("rank-%d.json", c.agent.started))}
	if err := m.start(); err != nil {
		return nil, err
	}
	c.members[local] = m
	c.living++
	c.wg.Go(m.watch)
	if m.proc.Channel != nil {
		c.wg.Go(m.listen)
		if !c.order.Warm {
			c.place(m)
		}
	}
	return m, nil
}

// files is about how many files the agent, or one of its ranks, has open at most:
// pipes and sockets for each rank, or connections and memory for each peer.
func (c *crew) files() int {
	const few, each = 32, 8
	return few + each*max(len(c.members), c.order.WorldSize)
}

// place tells a member where it stands. c.mu is held.
func (c *crew) place(m *member) {
	o := c.order
	m.gen, m.rank = o.Gen, o.FirstRank+m.local
	m.signs.restart()
	var socket *os.File
	if m.rank == 0 {
		socket = c.agent.socket
	}
	// A member that does not take it has ended, or hangs: both are found out.
	_ = m.proc.Channel.Send(launch.Order{Place: c.agent.place(o, m.local)}, socket)
}

// leave ends what one member, or start or join, has in the crew.
func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.living--; c.living == 0 {
		c.sealed = true
		close(c.over)
	}
}

// isOver tells whether nothing is left of it.
func (c *crew) isOver() bool {
	select {
	case <-c.cleared:
		return true
	default:
		return false
	}
}

// number is the generation at hand.
func (c *crew) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Gen
}

// each calls f for every member that was started.
func (c *crew) each(f func(*member)) {
	c.mu.Lock()
	members := slices.Clone(c.members)
	c.mu.Unlock()
	for _, m := range members {
		if m != nil {
			f(m)
		}
	}
}

// signal sends sig to each rank.
func (c *crew) signal(sig syscall.Signal) {
	c.each(func(m *member) { _ = m.proc.Signal(sig) }) // it fails for what is being killed anyway
}

// tell sends each rank an order.
func (c *crew) tell(o launch.Order) {
	c.each(func(m *member) {
		if m.proc.Channel != nil {
			_ = m.proc.Channel.Send(o, nil) // one that ended needs none
		}
	})
}

// kill kills all ranks at once, as generation gen, and gives them the agent's
// patience to be gone.
func (c *crew) kill(gen int) {
	c.mu.Lock()
	c.order.Gen = gen
	c.mu.Unlock()
	c.killOnce.Do(func() {
		c.each(func(m *member) { m.proc.Kill() })
		patience := time.AfterFunc(c.agent.patience, func() { close(c.hopeless) })
		go func() {
			<-c.over
			patience.Stop()
		}()
	})
}

// finish waits for the ranks, clears away what they left, and reports it.
func (c *crew) finish() {
	<-c.over
	c.wg.Wait()
	stuck, err := c.agent.sweep(c.agent.setup.mark(), c.agent.patience)
	if err != nil {
		c.agent.emit(report{Broken: &brokenReport{err.Error()}})
	}
	for _, m := range c.members {
		if m == nil {
			continue
		}
		select {
		case <-m.proc.Ended():
		default:
			if !slices.Contains(stuck, m.proc.PID()) {
				stuck = append(stuck, m.proc.PID())
			}
		}
	}
	c.agent.emit(report{Quiet: &quietReport{c.number(), stuck}})
	close(c.cleared)
}

// unstarted reports a rank without a process, as a shell would.
func unstarted(o startOrder, local int, err error) report {
	rank := o.FirstRank + local
	text := launch.EncodeFailure(launch.Failure{Message: err.Error(), Rank: rank, Permanent: true, Time: time.Now()})
	return report{Exited: &exitedReport{Gen: o.Gen, Rank: rank, Exit: launch.Exit{Code: 127}, ErrorFile: text}}
}

// waitUpTo reports whether done was closed within d.
func waitUpTo(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// watchLife looks for ranks that show no sign of life, or complete nothing.
func (c *crew) watchLife() {
	tick := time.NewTicker(lifeTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.each(func(m *member) {
				if why := m.lifeless(c.agent.setup.HangTimeout); why != "" {
					m.hang(why)
				}
			})
		case <-c.over:
			return
		}
	}
}

// replace kills the member that has the rank, since for waited for it in vain.
func (c *crew) replace(o replaceOrder) {
	c.each(func(m *member) {
		c.mu.Lock()
		mine := m.rank == o.Rank && m.gen == o.Gen
		c.mu.Unlock()
		if mine {
			m.hang(fmt.Sprintf("it hangs: rank %d waited for it in vain", o.For))
		}
	})
}

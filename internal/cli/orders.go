package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"sync"
	"time"

	"ddp/runtime/launch"
)

var (
	// errSuperseded ends what a rank does in a generation that is over.
	errSuperseded = errors.New("the next generation has begun")
	// errLeave tells a rank that the world goes on without it.
	errLeave = errors.New("this rank is to leave")
	// errNoAgent ends a rank that nobody leads any more.
	errNoAgent = errors.New("the agent is gone")
)

// beatEvery is how often a rank shows that it lives.
const beatEvery = 500 * time.Millisecond

// orders is the rank's end of its channel to the agent: places of generations
// come in, signs of life go out.
type orders struct {
	channel *launch.Channel
	quit    chan struct{}
	wg      sync.WaitGroup
	came    chan struct{} // holds a token when next or over has changed

	mu     sync.Mutex
	next   *launch.Place // newest that was not taken yet
	socket *os.File      // that came with it
	cancel context.CancelCauseFunc
	idle   bool  // between generations
	over   error // no place will come any more
}

// openOrders starts to listen to the agent; nil when there is no channel.
func (r *rank) openOrders() (*orders, error) {
	channel, err := r.place.Channel()
	if channel == nil || err != nil {
		return nil, err
	}
	o := &orders{channel: channel, quit: make(chan struct{}), came: make(chan struct{}, 1), idle: true}
	o.wg.Go(func() { o.listen(r) })
	o.wg.Go(func() { o.beat(r) })
	o.report(launch.Status{Ready: true})
	return o, nil
}

func (o *orders) close() {
	close(o.quit)
	_ = o.channel.Close() // what could still be said, nobody hears
	o.wg.Wait()
	if o.socket != nil {
		o.socket.Close()
	}
}

// report tells the agent something. An agent that is gone takes us with it.
func (o *orders) report(s launch.Status) { _ = o.channel.Send(s, nil) }

// listen takes orders until the channel ends.
func (o *orders) listen(r *rank) {
	for {
		var order launch.Order
		socket, err := o.channel.Receive(&order)
		switch {
		case err != nil:
			o.end(errNoAgent)
			return
		case order.Place != nil:
			o.put(order.Place, socket)
		case order.Pause:
			r.control.Pause()
		case order.Leave:
			o.end(errLeave)
		case order.Dump:
			r.dump()
		}
	}
}

// put makes a place the next one and ends the work in the one before.
func (o *orders) put(p *launch.Place, socket *os.File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.socket != nil {
		o.socket.Close()
	}
	o.next, o.socket = p, socket
	if o.cancel != nil {
		o.cancel(errSuperseded)
	}
	o.ring()
}

// end says that no place will come any more.
func (o *orders) end(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = why
	if o.cancel != nil && why == errNoAgent {
		o.cancel(why)
	}
	o.ring()
}

func (o *orders) ring() {
	select {
	case o.came <- struct{}{}:
	default:
	}
}

// takePlace waits for the rank's place in the next generation. The returned
// context ends when yet another one begins.
func (r *rank) takePlace(ctx context.Context) (context.Context, error) {
	o := r.orders
	o.setIdle(true)
	for {
		o.mu.Lock()
		if p := o.next; p != nil {
			genCtx, cancel := context.WithCancelCause(ctx)
			r.place = r.place.In(*p, o.socket)
			o.next, o.socket, o.cancel, o.idle = nil, nil, cancel, false
			r.control.Resume()
			o.mu.Unlock()
			return genCtx, nil
		}
		over := o.over
		o.mu.Unlock()
		if over != nil {
			return nil, over
		}
		select {
		case <-o.came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (o *orders) setIdle(idle bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.idle = idle
}

// beat shows at a steady pace that the process lives and how far it is.
func (o *orders) beat(r *rank) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		var done uint64
		if t := r.trainer.Load(); t != nil {
			done = t.Progress()
		}
		o.mu.Lock()
		idle := o.idle
		o.mu.Unlock()
		o.report(launch.Status{Beat: &launch.Beat{Progress: done, Idle: idle}})
		select {
		case <-tick.C:
		case <-o.quit:
			return
		}
	}
}

// dump writes what all goroutines do to stderr, from where it gets into the log.
func (r *rank) dump() {
	fmt.Fprintf(os.Stderr, "ddp: rank %d after step %d: all goroutines\n", r.place.Rank, r.step())
	_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1) // as good as it gets
}

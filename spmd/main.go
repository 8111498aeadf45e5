package spmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
)

// Main is the body of a program's main function: it asks connect for this
// rank's place, joins, runs and leaves the World. connect may be nil, for a
// World of one. On an error it prints "rank r: ..." to stderr and exits with
// status 1, or with 128 plus the number of the signal (SIGINT, SIGTERM) that
// ended ctx.
func Main(connect func(ctx context.Context) (Config, error), run func(ctx context.Context, w *World) error) {
	ctx, stop, got := untilSignal()
	rank, err := joinAndRun(ctx, connect, run)
	stop()
	if err == nil {
		return
	}
	text, prefix := err.Error(), fmt.Sprintf("rank %d: ", rank)
	fmt.Fprintln(os.Stderr, prefix+strings.TrimPrefix(text, prefix))
	if s := got.Load(); s != 0 {
		os.Exit(128 + int(s))
	}
	os.Exit(1)
}

// untilSignal returns a context that SIGINT and SIGTERM end, and the signal.
func untilSignal() (ctx context.Context, stop func(), got *atomic.Int32) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	got = new(atomic.Int32)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, ok := <-signals
		if !ok {
			return
		}
		signal.Stop(signals) // a second one kills
		got.Store(int32(s.(syscall.Signal)))
		cancel(fmt.Errorf("stopped by %v", s))
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel(nil)
	}, got
}

func joinAndRun(ctx context.Context, connect func(context.Context) (Config, error), run func(context.Context, *World) error) (rank int, err error) {
	c := Config{Size: 1}
	if connect != nil {
		if c, err = connect(ctx); err != nil {
			return 0, fmt.Errorf("connect: %w", err)
		}
	}
	w, err := Join(ctx, c)
	if err != nil {
		return c.Rank, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return c.Rank, run(ctx, w)
}

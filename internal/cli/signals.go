package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignal asks a launcher to end.
const stopSignal = syscall.SIGTERM

// notify collects the signals that a launcher acts on, until stop is called.
func notify() (signals <-chan os.Signal, stop func()) {
	return collect(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
}

// notifyStop collects those of them that ask for an end; the other is caught, lest
// it end us, and ignored.
func notifyStop() (signals <-chan os.Signal, stop func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	return collect(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

func collect(which ...os.Signal) (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, which...)
	return c, func() { signal.Stop(c) }
}

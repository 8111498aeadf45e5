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
	c := make(chan os.Signal, 8)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	return c, func() { signal.Stop(c) }
}

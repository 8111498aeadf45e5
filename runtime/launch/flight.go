package launch

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"ddp/spmd"
)

const flightName = "ddp-flight"

// FlightFile returns a file without a name for a rank's flight recorder: give it
// to the rank as FlightFD, and read it with spmd.ReadFlight at any time.
func FlightFile() (*os.File, error) {
	file, err := namelessFile(flightName)
	if err != nil {
		return nil, fmt.Errorf("make the flight recorder's file: %w", err)
	}
	return file, nil
}

// flights are this process's recorders by descriptor: one each, whatever the
// number of worlds.
var flights struct {
	mu   sync.Mutex
	byFD map[int]*spmd.Flight
}

// flight is the recorder that the agent reads; nil when there is none.
func (r Rank) flight() (*spmd.Flight, error) {
	flights.mu.Lock()
	defer flights.mu.Unlock()
	if f := flights.byFD[r.FlightFD]; f != nil || r.FlightFD == 0 {
		return f, nil
	}
	path := fmt.Sprintf("/proc/self/fd/%d", r.FlightFD)
	// A script between the agent and us may have put another file there.
	if name, err := os.Readlink(path); err != nil || !strings.Contains(name, flightName) {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the flight recorder: %w", err)
	}
	defer file.Close()
	f, err := spmd.OpenFlight(file)
	if err != nil {
		return nil, err
	}
	if flights.byFD == nil {
		flights.byFD = map[int]*spmd.Flight{}
	}
	flights.byFD[r.FlightFD] = f
	return f, nil
}

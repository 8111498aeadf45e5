package spmd

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// flightFile is a file that a Flight can have.
func flightFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(t.TempDir() + "/flight")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func openFlight(t *testing.T, file *os.File) *Flight {
	t.Helper()
	f, err := OpenFlight(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func readFlight(t *testing.T, file *os.File) FlightReport {
	t.Helper()
	r, err := ReadFlight(file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFlight has three ranks run collectives until one stays away: the records
// of the others tell what was done, what was not, and who is missing.
func TestFlight(t *testing.T) {
	worlds := InMemory(3)
	var files []*os.File
	for _, w := range worlds {
		file := flightFile(t)
		files = append(files, file)
		w.flight, w.timeout = openFlight(t, file), 50*time.Millisecond
	}
	const rounds = FlightLength + 44
	succeed(t, worlds, func(w *World) error {
		x := make([]float32, 5)
		for range rounds {
			if err := AllReduce(context.Background(), w, x, Sum); err != nil {
				return err
			}
		}
		if w.Rank() == 2 {
			return nil
		}
		if w.Barrier(context.Background()) == nil {
			t.Error("the barrier was passed without rank 2")
		}
		return nil
	})
	for rank, file := range files {
		text := strings.Split(strings.TrimSpace(readFlight(t, file).Text), "\n")[1:]
		if len(text) != FlightLength {
			t.Errorf("rank %d: %d lines, want the last %d", rank, len(text), FlightLength)
		}
		last, want := text[len(text)-1], "barrier 301, failed"
		if rank == 2 {
			want = "all-reduce 300 of 5 float32 (sum), done"
		}
		if !strings.Contains(last, want) {
			t.Errorf("rank %d: last line %q, want %q", rank, last, want)
		}
	}
	if said := readFlight(t, files[0]).Last + readFlight(t, files[1]).Last; !strings.Contains(said, "waited for rank 2") {
		t.Errorf("nobody tells that rank 2 is missing: %q", said)
	}
}

// TestFlightRuns reads a record while its collective waits, and goes on with the
// numbers of a file that was written before.
func TestFlightRuns(t *testing.T) {
	file := flightFile(t)
	if r := readFlight(t, file); r != (FlightReport{}) {
		t.Errorf("an empty file says %+v", r)
	}
	w := Solo()
	first := openFlight(t, file).begin(w, header{kind: kindBarrier, sequence: 7})
	first.end(nil)
	second := openFlight(t, file).begin(w, header{kind: kindBroadcast, dtype: float32Type, sequence: 8, count: 3, root: 1})
	second.waits(1)
	r := readFlight(t, file)
	if !strings.HasPrefix(r.Last, "broadcast 8 of 3 float32 from rank 1, begun ") || !strings.HasSuffix(r.Last, " before, waits for rank 1") {
		t.Errorf("last is %q", r.Last)
	}
	if lines := strings.Split(r.Text, "\n"); len(lines) != 4 || !strings.HasSuffix(lines[1], "barrier 7, done") {
		t.Errorf("text is %q", r.Text)
	}
}

// FuzzFlight reads any bytes; what it takes for records is in order.
func FuzzFlight(f *testing.F) {
	mem := make([]byte, flightBytes)
	(&Flight{mem: mem, next: 1}).begin(Solo(), header{kind: kindBarrier, sequence: 1}).end(nil)
	f.Add(mem[flightRecord : 2*flightRecord])
	f.Fuzz(func(t *testing.T, mem []byte) {
		before := uint64(0)
		for _, r := range parseFlight(mem) {
			if r.number < before || strings.Contains(r.row()+r.last(time.Now()), "\n") {
				t.Fatalf("%+v after %d", r, before)
			}
			before = r.number
		}
	})
}

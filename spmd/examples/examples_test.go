// Package examples tests the example programs as a user runs them.
package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ddp/runtime/launch"
)

// build compiles an example.
func build(t *testing.T, name string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", binary, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return binary
}

// alone runs a program without any launcher's environment.
func alone(binary string, args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPiAlone(t *testing.T) {
	binary := build(t, "pi")
	for _, method := range []string{"midpoint", "darts"} {
		out, err := alone(binary, "-method", method)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var pi float64
		if _, err := fmt.Sscanf(out, "pi is about %f", &pi); err != nil || pi < 3.13 || pi > 3.15 {
			t.Errorf("%s: %q", method, out)
		}
		if !strings.Contains(out, "from 1 ranks") {
			t.Errorf("%s: not a world of one: %q", method, out)
		}
	}
	if out, err := alone(binary, "-n", "0"); err == nil || !strings.Contains(out, "usage") {
		t.Errorf("-n 0: %v, %q", err, out)
	}
}

// TestPiTogether starts two ranks as a launcher does.
func TestPiTogether(t *testing.T) {
	binary := build(t, "pi")
	socket, port, err := launch.StoreSocket(true, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	outputs := make([]strings.Builder, 2)
	var ranks []*exec.Cmd
	for r := range outputs {
		place := launch.Rank{Rank: r, WorldSize: 2, LocalRank: r, LocalWorldSize: 2, MasterAddr: "127.0.0.1", MasterPort: port, SecretFD: 3}
		cmd := exec.Command(binary, "-n", "1000")
		cmd.ExtraFiles = []*os.File{secret(t)}
		if r == 0 {
			place.StoreFD = 4
			cmd.ExtraFiles = append(cmd.ExtraFiles, socket)
		}
		cmd.Env = place.Environ()
		cmd.Stdout, cmd.Stderr = &outputs[r], &outputs[r]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, cmd)
	}
	for r, cmd := range ranks {
		if err := cmd.Wait(); err != nil {
			t.Errorf("rank %d: %v: %s", r, err, outputs[r].String())
		}
	}
	if out := outputs[0].String(); !strings.Contains(out, "pi is about 3.14159") || !strings.Contains(out, "from 2 ranks") || outputs[1].Len() > 0 {
		t.Errorf("rank 0: %q; rank 1: %q", out, outputs[1].String())
	}
}

// secret returns a pipe that holds a job's secret.
func secret(t *testing.T) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString("open sesame"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return r
}

func TestKmeansAlone(t *testing.T) {
	out, err := alone(build(t, "kmeans"), "-k", "2")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var a, b, c, d float64
	if _, err := fmt.Sscanf(out, "center %f %f\ncenter %f %f", &a, &b, &c, &d); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	for i, v := range []float64{a - 10, b, c + 10, d} {
		if v < -0.1 || v > 0.1 {
			t.Errorf("coordinate %d is off by %v: %q", i, v, out)
		}
	}
}

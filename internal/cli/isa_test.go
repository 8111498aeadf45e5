package cli

import (
	"strings"
	"syscall"
	"testing"

	"ddp/model/compute/cpu"
)

// TestISAStays continues a run with the instruction set of its snapshot, tells
// when another is forced, and refuses one that the machine lacks.
func TestISAStays(t *testing.T) {
	want := func(isa string, p *proc) {
		t.Helper()
		if up, ok := p.last("rank_up"); !ok || isaOf(p) != isa {
			t.Errorf("rank 0 runs %q, want %q (%v)", isaOf(p), isa, up)
		}
	}
	dir := tinyFolder(t)
	p := start(t, dir, []string{"DDP_ISA=generic"}, "run", "job.toml", "--json", "--set", "train.max_steps=10")
	p.finish()
	want("generic", p)
	p = start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=15")
	p.finish()
	want("generic", p)
	have := cpu.ISAs()
	if best := have[len(have)-1]; best != "generic" {
		p = start(t, dir, []string{"DDP_ISA=" + best}, "run", "job.toml", "--json", "--set", "train.max_steps=20")
		p.finish()
		want(best, p)
		if !warned(p, "rounds differently") {
			t.Error("nothing was said about the other instruction set")
		}
	}
	p = start(t, dir, []string{"DDP_ISA=altivec"}, "run", "job.toml", "--json", "--set", "train.max_steps=30")
	if code := p.wait(); code != 2 {
		t.Errorf("exit code %d with an unknown instruction set, want 2", code)
	}
	if !strings.Contains(p.stderr.String(), "ddp: DDP_ISA=altivec, but this machine has generic") {
		t.Errorf("stderr is %q", p.stderr.String())
	}
}

func isaOf(p *proc) string {
	for _, e := range p.all {
		if e.Event == "rank_up" {
			return e.ISA
		}
	}
	return ""
}

func warned(p *proc, text string) bool {
	for _, e := range p.all {
		if e.Event == "warning" && strings.Contains(e.Message, text) {
			return true
		}
	}
	return false
}

// TestHangUp treats a closed terminal like a request to stop.
func TestHangUp(t *testing.T) {
	dir := tinyFolder(t)
	p := start(t, dir, nil, "run", "job.toml", "--json", "--set", "train.max_steps=1000000")
	p.until(func(e event) bool { return e.Event == "step" && e.Step == 3 })
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 129 {
		t.Errorf("exit code %d, want 129", code)
	}
	if p.count("snapshot") == 0 {
		t.Error("no snapshot at the stop")
	}
	noneLeft(t, dir)
}

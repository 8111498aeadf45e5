package launch

import (
	"slices"
	"testing"
)

func TestPortableLeavesOutWhatBelongsToTheMachine(t *testing.T) {
	got := Portable([]string{"HOME=/root", "OMP_NUM_THREADS=2", "SSH_AUTH_SOCK=/x", "TERMINAL=y", "XDG_RUNTIME_DIR=/run", "HOMEPAGE=a=b", "DDP_ROLE=agent", "EMPTY=", "TMUX=1", "PATH=/bin"})
	want := []string{"OMP_NUM_THREADS=2", "TERMINAL=y", "HOMEPAGE=a=b", "EMPTY=", "PATH=/bin"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

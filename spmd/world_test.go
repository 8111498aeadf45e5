package spmd

import (
	"fmt"
	"testing"
)

// TestCheck runs the conformance check over every transport.
func TestCheck(t *testing.T) {
	check := func(t *testing.T, worlds []*World) {
		succeed(t, worlds, func(w *World) error {
			names := 0
			Check(t.Context(), w, func(name string, err error) {
				names++
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			if names != 1+5*(3*5+5)+6 {
				return fmt.Errorf("%d checks reported", names)
			}
			return nil
		})
	}
	for _, n := range []int{1, 2, 3, 6} {
		t.Run(fmt.Sprintf("memory-%d", n), func(t *testing.T) { check(t, InMemory(n)) })
	}
	t.Run("shm-3", func(t *testing.T) { check(t, joined(t, 3, transport("shm"))) })
	t.Run("tcp-3", func(t *testing.T) { check(t, joined(t, 3, transport("tcp"))) })
	t.Run("mixed-4", func(t *testing.T) { check(t, joined(t, 4, twoHosts)) })
}

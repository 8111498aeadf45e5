package launch

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// setEnv sets this process's environment for the test.
func setEnv(t *testing.T, env ...string) {
	t.Helper()
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
}

func TestRankSurvivesTheEnvironment(t *testing.T) {
	want := Rank{Rank: 5, WorldSize: 8, LocalRank: 1, LocalWorldSize: 4, NodeRank: 1, Nodes: 2, MasterAddr: "::1", MasterPort: 4711,
		RestartCount: 3, MaxRestarts: 9, Generation: 4, RunID: "run 1", Role: "trainer", ErrorFile: "/tmp/e.json", EventsFD: 33, SecretFD: 34, PayloadFD: 35, StoreFD: 36, ChannelFD: 37, FlightFD: 38}
	setEnv(t, want.Environ()...)
	got, launched, err := FromEnv()
	if err != nil || !launched || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, %v; want %+v", got, launched, err, want)
	}
}

func TestFromEnv(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		r, launched, err := FromEnv()
		if launched || err != nil || r.WorldSize != 1 {
			t.Errorf("%+v, %v, %v", r, launched, err)
		}
		config, err := Connect(t.Context())
		if err != nil || config.Size != 1 || config.Store != nil {
			t.Errorf("connect: %+v, %v", config, err)
		}
	})
	t.Run("torchrun", func(t *testing.T) {
		setEnv(t, "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "TORCHELASTIC_RESTART_COUNT=3")
		r, launched, err := FromEnv()
		if !launched || err != nil || r.Generation != 3 || r.RestartCount != 3 {
			t.Errorf("%+v, %v, %v", r, launched, err)
		}
		if _, _, err := r.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "ddp launch") {
			t.Errorf("connect without a secret: %v", err)
		}
	})
	for env, want := range map[string]string{
		"RANK=x":                `RANK is "x"`,
		"RANK=-1":               `RANK is "-1"`,
		"RANK=2 WORLD_SIZE=2":   "RANK is 2 with WORLD_SIZE=2",
		"RANK=0 WORLD_SIZE=two": `WORLD_SIZE is "two"`,
		"RANK=0 LOCAL_RANK=4 LOCAL_WORLD_SIZE=4 WORLD_SIZE=4": "LOCAL_RANK is 4",
		"RANK=0 MASTER_PORT=1e9":                              "MASTER_PORT",
	} {
		t.Run(env, func(t *testing.T) {
			setEnv(t, strings.Fields(env)...)
			if _, launched, err := FromEnv(); !launched || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, %v; want %q", launched, err, want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	got := Environment([]string{"A=1", "B=2", "C=3"}, []string{"B=x=y", "D="}, []string{"C", "A=9"})
	if want := []string{"A=9", "B=x=y", "D="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if v, ok := Lookup(got, "B"); !ok || v != "x=y" {
		t.Errorf("B is %q, %v", v, ok)
	}
	if _, ok := Lookup(got, "C"); ok {
		t.Error("C is there")
	}
}

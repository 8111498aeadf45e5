package launch

import (
	"fmt"
	"os"
	"strconv"
)

// RoleVariable names the environment variable that says which part of the
// program a process plays. Unset: the launcher, which the user starts.
const (
	RoleVariable = "DDP_ROLE"
	RoleRank     = "rank"
	RoleAgent    = "agent"
)

// TreeVariable marks every process of one process tree, whatever it does to its
// parents, groups and sessions, so that Sweep finds it.
const TreeVariable = "DDP_TREE"

// Rank is the place of one process in a job. Environ writes it for a child,
// FromEnv reads it there. The variables are torchrun's, so that its scripts run
// unchanged, plus those that begin with DDP_.
type Rank struct {
	Rank, WorldSize           int
	LocalRank, LocalWorldSize int // on the node; LocalWorldSize 0: unknown
	NodeRank, Nodes           int

	MasterAddr string // of rank 0's store; MasterPort 0: there is none
	MasterPort int

	RestartCount, MaxRestarts int
	Generation                int
	RunID                     string
	Role                      string // what the ranks are, for torchrun's scripts; "": default
	ErrorFile                 string // where Fail reports; "": nowhere

	// Numbers of inherited descriptors; 0: not inherited.
	EventsFD, SecretFD, PayloadFD, StoreFD, ChannelFD, FlightFD int

	given *given // by an Order; nil: inherited
}

// variables returns each variable that holds a number with the field that it fills.
func (r *Rank) variables() []numberVariable {
	return []numberVariable{
		{"RANK", &r.Rank}, {"ROLE_RANK", &r.Rank},
		{"WORLD_SIZE", &r.WorldSize}, {"ROLE_WORLD_SIZE", &r.WorldSize},
		{"LOCAL_RANK", &r.LocalRank}, {"LOCAL_WORLD_SIZE", &r.LocalWorldSize},
		{"GROUP_RANK", &r.NodeRank}, {"NODE_RANK", &r.NodeRank}, {"GROUP_WORLD_SIZE", &r.Nodes},
		{"TORCHELASTIC_RESTART_COUNT", &r.RestartCount}, {"TORCHELASTIC_MAX_RESTARTS", &r.MaxRestarts},
		{"DDP_GENERATION", &r.Generation},
		{"MASTER_PORT", &r.MasterPort},
		{"DDP_EVENTS_FD", &r.EventsFD}, {"DDP_SECRET_FD", &r.SecretFD},
		{"DDP_PAYLOAD_FD", &r.PayloadFD}, {"DDP_STORE_FD", &r.StoreFD}, {"DDP_CHANNEL_FD", &r.ChannelFD},
		{"DDP_FLIGHT_FD", &r.FlightFD},
	}
}

type numberVariable struct {
	name  string
	field *int
}

// optional lists the variables that are left out when they are 0.
var optional = map[string]bool{"MASTER_PORT": true, "DDP_EVENTS_FD": true, "DDP_SECRET_FD": true, "DDP_PAYLOAD_FD": true, "DDP_STORE_FD": true, "DDP_CHANNEL_FD": true, "DDP_FLIGHT_FD": true}

// Environ returns r as variables of the form NAME=value.
func (r Rank) Environ() []string {
	var env []string
	for _, v := range r.variables() {
		if *v.field != 0 || !optional[v.name] {
			env = append(env, v.name+"="+strconv.Itoa(*v.field))
		}
	}
	role := r.Role
	if role == "" {
		role = "default"
	}
	env = append(env, "ROLE_NAME="+role, "TORCHELASTIC_RUN_ID="+r.RunID, "TORCHELASTIC_ERROR_FILE="+r.ErrorFile)
	if r.MasterPort != 0 {
		// torch's rank 0 is to open its own store on the port that is kept for it.
		env = append(env, "MASTER_ADDR="+r.MasterAddr, "TORCHELASTIC_USE_AGENT_STORE=False")
	}
	return env
}

// FromEnv reads this process's place. It is false when no launcher started the
// process: RANK is not set. Descriptors that it names are kept from children.
func FromEnv() (Rank, bool, error) {
	r := Rank{WorldSize: 1, Nodes: 1}
	if os.Getenv("RANK") == "" {
		return r, false, nil
	}
	for _, v := range r.variables() {
		text := os.Getenv(v.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return r, true, fmt.Errorf("environment variable %s is %q, want a number of 0 or more", v.name, text)
		}
		*v.field = n
	}
	if os.Getenv("DDP_GENERATION") == "" {
		r.Generation = r.RestartCount
	}
	r.MasterAddr = os.Getenv("MASTER_ADDR")
	r.RunID = os.Getenv("TORCHELASTIC_RUN_ID")
	r.Role = os.Getenv("ROLE_NAME")
	r.ErrorFile = os.Getenv("TORCHELASTIC_ERROR_FILE")
	r.keepDescriptors()
	return r, true, r.validate()
}

// validate refuses places that cannot be.
func (r Rank) validate() error {
	if r.Rank >= r.WorldSize {
		return fmt.Errorf("environment variable RANK is %d with WORLD_SIZE=%d", r.Rank, r.WorldSize)
	}
	if r.LocalWorldSize > r.WorldSize || r.LocalWorldSize > 0 && r.LocalRank >= r.LocalWorldSize {
		return fmt.Errorf("environment variable LOCAL_RANK is %d with LOCAL_WORLD_SIZE=%d and WORLD_SIZE=%d", r.LocalRank, r.LocalWorldSize, r.WorldSize)
	}
	return nil
}

package observe

// Event is one thing that happened. Each is a struct whose JSON fields are a
// contract with scripts; Marshal adds "event" and "time". A number that is not
// finite becomes null, since JSON has no word for it.
type Event interface {
	// Kind is the value of "event".
	Kind() string
}

// RankUp says that a rank has joined its world.
type RankUp struct {
	Rank       int    `json:"rank"`
	LocalRank  int    `json:"local_rank"`
	Host       string `json:"host"`
	PID        int    `json:"pid"`
	Generation int    `json:"generation"`
	WorldSize  int    `json:"world_size"`
	Device     string `json:"device"` // back end: cpu
	ISA        string `json:"isa"`
}

// Step is one optimizer step of the whole world.
type Step struct {
	Step       int     `json:"step"` // completed steps
	Epoch      int     `json:"epoch"`
	Loss       float64 `json:"loss"` // mean over the step's targets, in nats
	LR         float64 `json:"lr"`
	GradNorm   float64 `json:"grad_norm"` // before clipping
	TokensPerS float64 `json:"tokens_per_s"`
	StepMS     float64 `json:"step_ms"`
	Generation int     `json:"generation"`
	WorldSize  int     `json:"world_size"`
}

// Eval is an evaluation on held-out data.
type Eval struct {
	Step     int      `json:"step"`
	ValLoss  float64  `json:"val_loss"`           // mean over all targets, in nats
	Accuracy *float64 `json:"accuracy,omitempty"` // share of exam questions answered right
}

// Snapshot says that one is safely written.
type Snapshot struct {
	Step    int     `json:"step"`
	Path    string  `json:"path"`
	Bytes   int64   `json:"bytes"`
	StallMS float64 `json:"stall_ms"` // training waited
	WriteMS float64 `json:"write_ms"` // in the background
}

// Failure is the death of a rank, with its root cause.
type Failure struct {
	Rank          int      `json:"rank"`
	Host          string   `json:"host"`
	PID           int      `json:"pid"`
	Cause         string   `json:"cause"`
	ExitCode      int      `json:"exit_code"`
	Signal        string   `json:"signal"` // that killed it, as "SIGKILL"; "" when it exited
	ErrorFile     string   `json:"error_file"`
	Generation    int      `json:"generation"`
	LastOperation string   `json:"last_operation,omitempty"` // its last collective, and where that stood
	FlightFile    string   `json:"flight_file,omitempty"`    // its last collectives, a line each
	LogTail       []string `json:"log_tail,omitempty"`       // the rank's last lines
}

// Recovered is the first step after a failure.
type Recovered struct {
	Mode       string  `json:"mode"` // live, restart
	Generation int     `json:"generation"`
	WorldSize  int     `json:"world_size"`
	Step       int     `json:"step"`
	LostSteps  int     `json:"lost_steps"` // completed before the failure and done again
	DownMS     float64 `json:"down_ms"`    // from the failure to this step's end
}

// Regrouped says that a generation after the first has its state.
type Regrouped struct {
	Generation int    `json:"generation"`
	WorldSize  int    `json:"world_size"`
	Step       int    `json:"step"` // completed
	From       string `json:"from"` // peers: ranks still held it; snapshot; start
}

// Member is a change of membership.
type Member struct {
	Change    string `json:"change"` // joined, left
	Host      string `json:"host"`
	WorldSize int    `json:"world_size"`
	Reason    string `json:"reason"`
}

// Done ends a run that went to its end.
type Done struct {
	Step         int      `json:"step"`
	Loss         float64  `json:"loss"`
	ValLoss      *float64 `json:"val_loss"`
	TokensPerS   float64  `json:"tokens_per_s"`
	ParamsSHA256 string   `json:"params_sha256"`
	Restarts     int      `json:"restarts"`
}

// Resumed says where a run continues from.
type Resumed struct {
	Step int    `json:"step"`
	Path string `json:"path"`
}

// Warning is what a person should know although the run goes on.
type Warning struct {
	Message string `json:"message"`
}

// Check is one check of a selftest.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// Bench is one measurement of a collective, in nccl-tests' terms.
type Bench struct {
	Name   string  `json:"name"`
	Bytes  int     `json:"bytes"`
	MS     float64 `json:"ms"`
	AlgGBs float64 `json:"algbw_gb_s"`
	BusGBs float64 `json:"busbw_gb_s"`
	Wrong  int     `json:"wrong"` // values that are not what they must be
}

// Kind is "rank_up".
func (RankUp) Kind() string { return "rank_up" }

// Kind is "step".
func (Step) Kind() string { return "step" }

// Kind is "eval".
func (Eval) Kind() string { return "eval" }

// Kind is "snapshot".
func (Snapshot) Kind() string { return "snapshot" }

// Kind is "failure".
func (Failure) Kind() string { return "failure" }

// Kind is "recovered".
func (Recovered) Kind() string { return "recovered" }

// Kind is "regrouped".
func (Regrouped) Kind() string { return "regrouped" }

// Kind is "member".
func (Member) Kind() string { return "member" }

// Kind is "done".
func (Done) Kind() string { return "done" }

// Kind is "resumed".
func (Resumed) Kind() string { return "resumed" }

// Kind is "warning".
func (Warning) Kind() string { return "warning" }

// Kind is "check".
func (Check) Kind() string { return "check" }

// Kind is "bench".
func (Bench) Kind() string { return "bench" }

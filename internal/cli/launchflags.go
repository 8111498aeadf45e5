package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// launchFlags are launch's flags: torchrun's, under its names.
type launchFlags struct {
	perNode, nodes, role       string
	maxRestarts, shutdown      int
	logDir, redirects, tee     string
	prefix, filter             string
	nodeRank                   int
	endpoint, backend, id      string
	conf, secretFile           string
	standalone                 bool
	masterAddr, localAddr      string
	masterPort                 int
	module, noPython, runPath  bool
	monitor                    float64
	startMethod, signals, sink string
}

// defaultMasterPort is torchrun's, for several nodes without an endpoint.
const defaultMasterPort = 29500

// defineLaunchFlags defines the flags. Those that say "no effect" are there
// because scripts give them.
func defineLaunchFlags(flags *flag.FlagSet) *launchFlags {
	f := &launchFlags{}
	flags.StringVar(&f.perNode, "nproc-per-node", "1", "`N` ranks on this machine; gpu: one a GPU, cpu: one a core, auto: gpu where there are any")
	flags.StringVar(&f.nodes, "nnodes", "1", "`N` nodes, or MIN:MAX of them")
	flags.IntVar(&f.nodeRank, "node-rank", 0, "`N`, this node's place among them; node 0 leads")
	flags.StringVar(&f.endpoint, "rdzv-endpoint", "", "`HOST:PORT` where the nodes meet; the node whose address it is leads")
	flags.StringVar(&f.backend, "rdzv-backend", "static", "c10d or static: `HOW` the leading node is told from the others")
	flags.StringVar(&f.id, "rdzv-id", "none", "`NAME` of the job, the same on all nodes")
	flags.StringVar(&f.conf, "rdzv-conf", "", "`KEY=VALUE,...` of the meeting: join_timeout, last_call_timeout, is_host, keep_alive_interval, ...")
	flags.StringVar(&f.secretFile, "rdzv-secret-file", os.Getenv("DDP_SECRET_FILE"), "`FILE` with the secret that the nodes share; without one it follows from --rdzv-id")
	flags.BoolVar(&f.standalone, "standalone", false, "one node, whatever the other flags say of meeting")
	flags.StringVar(&f.masterAddr, "master-addr", "127.0.0.1", "`HOST` of node 0, when there is no --rdzv-endpoint")
	flags.IntVar(&f.masterPort, "master-port", 0, "`PORT` there; with one node MASTER_PORT itself; 0: a free one, or 29500 with several nodes")
	flags.StringVar(&f.localAddr, "local-addr", "", "`ADDRESS` of this node towards the others")
	flags.StringVar(&f.role, "role", "default", "`NAME` of what the ranks are")
	flags.IntVar(&f.maxRestarts, "max-restarts", 0, "`N` restarts before giving up")
	flags.StringVar(&f.logDir, "log-dir", "", "`DIR` for each rank's output, a folder a run (default: a temporary folder, kept after a failure)")
	flags.StringVar(&f.redirects, "r", "0", "see --redirects")
	flags.StringVar(&f.redirects, "redirects", "0", "`WHAT` goes to the log files alone: 1 stdout, 2 stderr, 3 both, or by local rank as in 0:1,1:2")
	flags.StringVar(&f.tee, "t", "0", "see --tee")
	flags.StringVar(&f.tee, "tee", "0", "`WHAT` goes there and to the console, after torchrun's prefix")
	flags.StringVar(&f.prefix, "log-line-prefix-template", os.Getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"), "`TEXT` before each line of --tee, with ${role_name}, ${rank}, ${local_rank}, ${hostname}")
	flags.StringVar(&f.filter, "local-ranks-filter", "", "`N,...` local ranks that are shown on the console")
	flags.BoolVar(&f.module, "m", false, "see --module")
	flags.BoolVar(&f.module, "module", false, "the command is a Python module, as for python -m")
	flags.BoolVar(&f.noPython, "no-python", false, "the command is run as it is, whatever its name")
	flags.BoolVar(&f.runPath, "run-path", false, "the command is a Python script, whatever its name")
	flags.IntVar(&f.shutdown, "shutdown-timeout", -1, "`SECONDS` from a signal to the ranks until they are killed (default: none)")
	flags.Float64Var(&f.monitor, "monitor-interval", 0.1, "`SECONDS`; no effect: a rank's end is seen at once")
	flags.StringVar(&f.startMethod, "start-method", "spawn", "`HOW`; no effect")
	flags.StringVar(&f.signals, "signals-to-handle", "", "`NAMES`; no effect: TERM, INT and HUP end the ranks, USR1 is passed on")
	flags.StringVar(&f.sink, "event-log-handler", "null", "`NAME`; no effect")
	return f
}

// parseLaunch reads the flags up to the first word that is none: what follows
// belongs to the command, flags and all. asIs: a "--" came before it.
func (in *invocation) parseLaunch() (f *launchFlags, command []string, asIs bool, err error) {
	f = defineLaunchFlags(in.flags)
	words, rest := in.launchWords()
	if err := in.flags.Parse(words); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(in.stdout, in.cmd.help(in.flags))
			return nil, nil, false, errHelpShown
		}
		return nil, nil, false, launchUsage("%w (see `ddp launch --help`)", err)
	}
	if err := flagsFromEnvironment(in.flags); err != nil {
		return nil, nil, false, err
	}
	asIs = len(rest) > 0 && rest[0] == "--"
	if asIs {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return nil, nil, false, launchUsage("no command given: ddp launch --nproc-per-node 4 -- COMMAND")
	}
	return f, rest, asIs, f.validate()
}

func launchUsage(format string, args ...any) error {
	return usageError{fmt.Errorf("launch: "+format, args...)}
}

// launchWords splits the words into flags and the rest. Names are accepted as
// torchrun accepts them: with underscores, cut short where no other name begins
// so, and -r and -t with their value attached.
func (in *invocation) launchWords() (flags, rest []string) {
	for i := 0; i < len(in.words); i++ {
		word := in.words[i]
		dashes := len(word) - len(strings.TrimLeft(word, "-"))
		if dashes == 0 || dashes == len(word) {
			return flags, in.words[i:]
		}
		name, value, attached := strings.Cut(word[dashes:], "=")
		if dashes == 1 && (name[0] == 'r' || name[0] == 't') && len(name) > 1 && !attached && in.flags.Lookup(name) == nil {
			name, value, attached = name[:1], name[1:], true
		}
		f := fullFlag(in.flags, strings.ReplaceAll(name, "_", "-"))
		if f == nil {
			return append(flags, word), in.words[i+1:] // flag.Parse says that it is unknown
		}
		flags = append(flags, "--"+f.Name)
		if attached {
			flags[len(flags)-1] += "=" + value
		} else if b, ok := f.Value.(interface{ IsBoolFlag() bool }); (!ok || !b.IsBoolFlag()) && i+1 < len(in.words) {
			i++
			flags = append(flags, in.words[i])
		}
	}
	return flags, nil
}

// fullFlag finds a flag by its name or by the beginning of its name alone.
func fullFlag(flags *flag.FlagSet, name string) *flag.Flag {
	if f := flags.Lookup(name); f != nil {
		return f
	}
	var found []*flag.Flag
	flags.VisitAll(func(f *flag.Flag) {
		if len(name) > 1 && strings.HasPrefix(f.Name, name) {
			found = append(found, f)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// flagsFromEnvironment sets the flags that were not given and whose PET_NAME is
// in the environment, as torchrun does.
func flagsFromEnvironment(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var failed error
	flags.VisitAll(func(f *flag.Flag) {
		name := "PET_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := os.Getenv(name)
		short := f.Name[:1]
		if value == "" || given[f.Name] || given[short] && (f.Name == "redirects" || f.Name == "tee") {
			return
		}
		if err := flags.Set(f.Name, value); err != nil && failed == nil {
			failed = launchUsage("%s=%s: %w", name, value, err)
		}
	})
	return failed
}

// validate refuses what no run can be.
func (f *launchFlags) validate() error {
	switch {
	case f.maxRestarts < 0:
		return launchUsage("--max-restarts is %d, want 0 or more", f.maxRestarts)
	case f.nodeRank < 0:
		return launchUsage("--node-rank is %d, want 0 or more", f.nodeRank)
	case f.masterPort < 0 || f.masterPort > 65535:
		return launchUsage("--master-port is %d, want 1 to 65535", f.masterPort)
	case f.backend != "static" && f.backend != "c10d":
		return launchUsage("--rdzv-backend is %q, want c10d or static", f.backend)
	case f.module && f.noPython:
		return launchUsage("--module and --no-python exclude each other")
	}
	return nil
}

// ranks is how many ranks this machine has.
func (f *launchFlags) ranks() (int, error) {
	switch gpus := gpuCount("/dev", os.Getenv("CUDA_VISIBLE_DEVICES")); f.perNode {
	case "gpu":
		if gpus == 0 {
			return 0, launchUsage("--nproc-per-node is gpu, and this machine has none that may be used")
		}
		return gpus, nil
	case "auto":
		if gpus > 0 {
			return gpus, nil
		}
		return usableCores(), nil
	case "cpu":
		return usableCores(), nil
	}
	n, err := strconv.Atoi(f.perNode)
	if err != nil {
		return 0, launchUsage("--nproc-per-node is %q, want a number, gpu, cpu or auto", f.perNode)
	}
	if n < 1 {
		return 0, launchUsage("--nproc-per-node is %d, want at least 1", n)
	}
	return n, nil
}

// gpuCount counts the device files of NVIDIA's GPUs, of which visible, if it is
// not empty, lists those that may be used.
func gpuCount(dev, visible string) int {
	files, _ := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*")) // the pattern is right
	if visible == "" {
		return len(files)
	}
	listed := 0
	for _, id := range strings.Split(visible, ",") {
		if id = strings.TrimSpace(id); id == "-1" {
			break // as CUDA reads it: what follows does not count
		}
		listed++
	}
	return min(listed, len(files))
}

// nodeRange is MIN:MAX of --nnodes.
func (f *launchFlags) nodeRange() (least, most int, err error) {
	if f.standalone {
		return 1, 1, nil
	}
	low, high, isRange := strings.Cut(f.nodes, ":")
	if !isRange {
		high = low
	}
	least, err1 := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || least < 1 || most < least {
		return 0, 0, launchUsage("--nnodes is %q, want N or MIN:MAX of at least 1", f.nodes)
	}
	if f.nodeRank >= most && f.backend == "static" {
		return 0, 0, launchUsage("--node-rank is %d of %d nodes: they count from 0", f.nodeRank, most)
	}
	return least, most, nil
}

// grace is how long ranks may take to end after a signal; 0: as long as they want.
func (f *launchFlags) grace() (time.Duration, error) {
	seconds := f.shutdown
	if text := os.Getenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT"); text != "" && seconds < 0 {
		var err error
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 0 {
			return 0, launchUsage("TORCH_ELASTIC_SHUTDOWN_TIMEOUT is %q, want seconds", text)
		}
	}
	switch {
	case seconds < 0:
		return 0, nil
	case seconds == 0:
		return time.Nanosecond, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
)

var launchCommand = command{
	name: "launch", args: "[flags] [--] COMMAND [ARG ...]", summary: "start any command once per rank, in torchrun's place",
	details: `Starts COMMAND --nproc-per-node times on this machine with RANK, WORLD_SIZE,
MASTER_ADDR and torchrun's other variables, watches it, and starts all ranks
anew when one fails, up to --max-restarts times. A script NAME.py runs under
python3 (or $PYTHON_EXEC), and so does a module with -m; after -- a command is
run as it is. A Go program that uses spmd.Main finds its world this way.

On several nodes run the same command on each. The leading node, which is the
one with --node-rank 0 or the one whose address --rdzv-endpoint names, waits for
the others, decides, and shows all output; the others end as the job ends. Nodes
prove to each other that they know a secret: put one into a file for
--rdzv-secret-file (or DDP_SECRET_FILE) unless the network is yours alone.

Flags may be written with underscores, cut short, and set by PET_NAME variables.

examples:
  ddp launch --nproc-per-node 4 -- ./pi -n 1000000
  ddp launch --nproc-per-node gpu --max-restarts 3 train.py --lr 1e-3
  ddp launch --nnodes 2 --node-rank 0 --master-addr a --rdzv-secret-file secret train.py
  ddp launch --nnodes 1:4 --rdzv-backend c10d --rdzv-endpoint a:29500 --rdzv-id big train.py`,
	run: runLaunch,
}

func runLaunch(in *invocation) error {
	f, words, asIs, err := in.parseLaunch()
	if err != nil {
		return err
	}
	l, err := f.plan()
	if err != nil {
		return err
	}
	if l.command, err = f.commandLine(words, asIs); err != nil {
		return err
	}
	l.name = filepath.Base(words[0])
	if l.screen, err = newLaunchConsole(in.console, f, l.perNode, l.perNode == 1 && l.most == 1); err != nil {
		return err
	}
	if l.most == 1 {
		return in.lead(l, nil)
	}
	return in.meet(l)
}

// launchPlan is what the flags come to.
type launchPlan struct {
	*launchFlags
	command     []string
	name        string // of the command, for people
	perNode     int
	least, most int // nodes
	meeting     meetingConf
	wait        time.Duration // from a signal to a kill
	screen      *launchConsole
}

func (f *launchFlags) plan() (l *launchPlan, err error) {
	l = &launchPlan{launchFlags: f}
	if l.perNode, err = f.ranks(); err != nil {
		return nil, err
	}
	if l.least, l.most, err = f.nodeRange(); err != nil {
		return nil, err
	}
	if l.meeting, err = parseMeetingConf(f.conf); err != nil {
		return nil, err
	}
	l.wait, err = f.grace()
	return l, err
}

// runID is the job's name to its ranks; a job of one node needs none of the user's.
func (l *launchPlan) runID() string {
	if l.most == 1 && (l.standalone || l.id == "none") {
		return uuid.NewString()
	}
	return l.id
}

// logFolder is the run's own, below --log-dir as torchrun makes it, or a temporary one.
func (l *launchPlan) logFolder(id string) (dir string, temporary bool) {
	if l.logDir == "" {
		return filepath.Join(os.TempDir(), "ddp-"+uuid.NewString()), true
	}
	if _, err := uuid.Parse(id); err != nil {
		id = filepath.Base(filepath.Clean("/"+id)) + "_" + uuid.NewString()[:8]
	}
	return filepath.Join(l.logDir, id), false
}

// lead runs the job; nodes is nil for a job of one.
func (in *invocation) lead(l *launchPlan, nodes *meeting) error {
	id := l.runID()
	logs, temporary := l.logFolder(id)
	signals, stop := notify()
	defer stop()
	spec := elastic.Spec{
		RunID: id, Role: l.role, Nodes: []elastic.Node{{Ranks: l.perNode}}, Command: l.command, LogDir: logs,
		MaxRestarts: l.maxRestarts, Grace: l.wait, Lease: l.meeting.lease, Signals: signals,
		OnLine: l.screen.line,
		OnFailure: func(f elastic.Failure) {
			fmt.Fprintf(in.stderr, "ddp: rank %d on %s: %s\n", f.Rank, f.Host, f.Cause)
		},
	}
	if nodes != nil {
		spec.MinNodes, spec.MaxNodes, spec.First, spec.Guests = l.least, l.most, nodes.first, nodes.guests
		spec.OnMember = func(m elastic.Member) { in.note(memberNote(m)) }
	} else {
		spec.Port = l.masterPort
	}
	res, err := elastic.Run(context.Background(), spec)
	if err != nil {
		return err
	}
	if res.ExitCode != launch.ExitOK {
		if res.Failure != nil && res.Stopped == nil {
			fmt.Fprint(in.stderr, failureReport(l.name, *res.Failure, l.perNode, res.Restarts))
			if err := passErrorFile(*res.Failure); err != nil {
				in.note(err.Error())
			}
		}
		return exitError{res.ExitCode} // what there is in the logs may say why
	}
	if temporary {
		return os.RemoveAll(logs)
	}
	return nil
}

func memberNote(m elastic.Member) string {
	change := "left"
	if m.Came {
		change = "joined"
	}
	return fmt.Sprintf("node %s %s: %s, now %d ranks", m.Host, change, m.Reason, m.WorldSize)
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ddp/jobs"
	"ddp/runtime/observe"
)

// A run's folder holds what there is to know of it:
//
//	run.json      who runs it and how it ended
//	events.jsonl  what --json prints
//	run.log       what a person would have seen, with the ranks' lines
//	control.log   what the control plane decided and why
//	secret        that nodes need to join
//	gen-N/        each rank's own output
const (
	runFile    = "run.json"
	eventsFile = "events.jsonl"
	outputFile = "run.log"
	secretFile = "secret"
)

// runInfo is run.json.
type runInfo struct {
	ID      string    `json:"id"`
	Job     string    `json:"job"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"` // of the launcher
	Started time.Time `json:"started"`
	Steps   int       `json:"steps"` // of the whole run; 0: not known
	Listen  string    `json:"listen,omitempty"`

	Ended    *time.Time `json:"ended,omitempty"`
	ExitCode int        `json:"exit_code"`
}

// runFolder is the folder of one run.
type runFolder struct {
	path string
	info runInfo
}

// logsOf is the folder of a job's runs; "" when the job has no folder.
func logsOf(job *jobs.Job) string {
	if job.Snapshot.Dir == "" {
		return ""
	}
	return filepath.Join(job.Snapshot.Dir, "logs")
}

// newRunFolder makes a run's folder: beside the snapshots, or a temporary one
// when there are none.
func newRunFolder(job *jobs.Job, id string, steps int) (*runFolder, error) {
	path := filepath.Join(os.TempDir(), "ddp-"+id)
	if logs := logsOf(job); logs != "" {
		path = filepath.Join(logs, id)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	f := &runFolder{path, runInfo{ID: id, Job: job.Name, PID: os.Getpid(), Started: time.Now(), Steps: steps, Listen: job.Cluster.Listen}}
	f.info.Host, _ = os.Hostname()
	return f, f.save()
}

// save writes run.json anew.
func (f *runFolder) save() error {
	text, err := json.MarshalIndent(f.info, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", runFile, err)
	}
	path := filepath.Join(f.path, runFile)
	if err := os.WriteFile(path+".tmp", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("note the run: %w", err)
	}
	return os.Rename(path+".tmp", path)
}

// sinks write events.jsonl and run.log.
func (f *runFolder) sinks() ([]observe.Sink, error) {
	events, err := createLines(filepath.Join(f.path, eventsFile))
	if err != nil {
		return nil, fmt.Errorf("make the run's record: %w", err)
	}
	output, err := createLines(filepath.Join(f.path, outputFile))
	if err != nil {
		events.Close()
		return nil, fmt.Errorf("make the run's log: %w", err)
	}
	return []observe.Sink{
		observe.NewClosing(observe.NewJSON(events, io.Discard), events),
		observe.NewClosing(observe.NewTerminal(output, false, false, nil, f.info.Steps), output),
	}, nil
}

// end notes how the run ended.
func (f *runFolder) end(code int) error {
	now := time.Now()
	f.info.Ended, f.info.ExitCode = &now, code
	return f.save()
}

// openRunFolder reads run.json.
func openRunFolder(path string) (*runFolder, error) {
	text, err := os.ReadFile(filepath.Join(path, runFile))
	if err != nil {
		return nil, err
	}
	f := &runFolder{path: path}
	if err := json.Unmarshal(text, &f.info); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, runFile), err)
	}
	return f, nil
}

// newestRun is the run of a folder of runs that began last.
func newestRun(logs string) (*runFolder, error) {
	files, err := filepath.Glob(filepath.Join(escapeGlob(logs), "*", runFile))
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	var newest *runFolder
	for _, file := range files {
		f, err := openRunFolder(filepath.Dir(file))
		if err == nil && (newest == nil || f.info.Started.After(newest.info.Started)) {
			newest = f
		}
	}
	if newest == nil {
		return nil, usageError{fmt.Errorf("no run is noted in %s", logs)}
	}
	return newest, nil
}

// escapeGlob makes a path match itself alone.
func escapeGlob(path string) string {
	var out []rune
	for _, c := range path {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return string(out)
}

// runFolder finds the run that a command line names: a job file (its newest
// run), or a run's own folder.
func (in *invocation) runFolder() (*runFolder, error) {
	var sets setFlags
	in.flags.Var(&sets, "set", "`table.key=value` as given to run, where it changes the snapshots' folder; may be repeated")
	args, err := in.parse(1)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
		f, err := openRunFolder(args[0])
		if errors.Is(err, fs.ErrNotExist) {
			return newestRun(filepath.Join(args[0], "logs"))
		}
		return f, err
	}
	job, err := jobs.Load(args[0], sets)
	if err != nil {
		return nil, err
	}
	if logsOf(job) == "" {
		return nil, usageError{fmt.Errorf("job %s has no folder, since snapshot.dir is empty: name the run's own, which `ddp run` tells", job.Name)}
	}
	return newestRun(logsOf(job))
}

// claim makes this process the only one that runs a job in its folder, until
// release. The claim ends with the process, however that ends.
func claim(job *jobs.Job) (release func(), err error) {
	logs := logsOf(job)
	if logs == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of runs: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(logs, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("claim the folder of runs: %w", err)
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { lock.Close() }, nil
	}
	lock.Close()
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("claim %s: %w", lock.Name(), err)
	}
	by := "another process"
	if other, err := newestRun(logs); err == nil {
		by = fmt.Sprintf("process %d on %s", other.info.PID, other.info.Host)
	}
	return nil, usageError{fmt.Errorf("job %s is being run already in %s, by %s (`ddp attach` shows it, `ddp stop` ends it; another snapshot.dir makes it another run)",
		job.Name, job.Snapshot.Dir, by)}
}

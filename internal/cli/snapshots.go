package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"ddp/jobs"
	"ddp/runtime/launch"
	"ddp/runtime/snapshot"
)

var snapshotsCommand = command{
	name: "snapshots", args: "JOB [--set table.key=value]... [--json]", summary: "list and verify a job's snapshots",
	details: `Lists the snapshots in the job's folder, newest first, and verifies every byte of
each against its hashes. Ends with exit code 5 when one of them is damaged; a run
passes such a snapshot over.

example:
  ddp snapshots jobs/mingpt.toml`,
	run: runSnapshots,
}

// listed is one line of `ddp snapshots --json`.
type listed struct {
	Step    int       `json:"step"`
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	Time    time.Time `json:"time"`
	ValLoss *float64  `json:"val_loss"`
	Best    bool      `json:"best"`
	Error   string    `json:"error,omitempty"`
}

func runSnapshots(in *invocation) error {
	asJSON := in.flags.Bool("json", false, "one JSON object a line")
	job, err := in.job()
	if err != nil {
		return err
	}
	if job.Snapshot.Dir == "" {
		return takesNone(job)
	}
	rows, err := verified(job.Snapshot.Dir)
	if err != nil {
		return err
	}
	if err := in.show(rows, *asJSON); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Error != "" {
			return exitError{launch.ExitSnapshot}
		}
	}
	return nil
}

// takesNone says that there is no folder to look for snapshots in.
func takesNone(job *jobs.Job) error {
	return usageError{fmt.Errorf("job %s takes no snapshots: snapshot.dir is empty", job.Name)}
}

// verified lists the snapshots of dir with what is wrong with each.
func verified(dir string) ([]listed, error) {
	infos, err := snapshot.List(dir)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var rows []listed
	for _, info := range infos {
		row := listed{Step: info.Step, Path: info.Path, Bytes: info.Bytes, Time: info.Time, ValLoss: info.ValLoss, Best: info.Best}
		err := info.Err
		if err == nil {
			err = snapshot.Verify(info.Path)
		}
		if err != nil {
			row.Error = err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (in *invocation) show(rows []listed, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(in.stdout)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return fmt.Errorf("write the list: %w", err)
			}
		}
		return nil
	}
	if len(rows) == 0 {
		fmt.Fprintln(in.stdout, "no snapshots yet")
		return nil
	}
	table := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "step\ttaken\tsize\tval loss\tstate\tpath")
	for _, r := range rows {
		loss, state := "-", "good"
		if r.ValLoss != nil {
			loss = fmt.Sprintf("%.4f", *r.ValLoss)
		}
		if r.Best {
			state = "good, best"
		}
		if r.Error != "" {
			state = "damaged: " + r.Error
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", r.Step, r.Time.Local().Format("2006-01-02 15:04:05"), size(r.Bytes), loss, state, r.Path)
	}
	return table.Flush()
}

// size is a number of bytes for people.
func size(bytes int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	x, u := float64(bytes), 0
	for x >= 1000 && u < len(units)-1 {
		x /= 1000
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

package cli

import (
	"encoding/json"
	"fmt"

	"ddp/jobs"
	"ddp/runtime/snapshot"
)

// continues checks that the newest snapshot in dir belongs to this job. What
// must agree and does not is an error that names it; what may differ (a new
// learning rate, more steps) is told, and the job file's value is used.
func continues(job *jobs.Job, dir string, note func(string)) error {
	infos, err := snapshot.List(dir)
	if err != nil {
		return fmt.Errorf("look for snapshots: %w", err)
	}
	for _, info := range infos { // newest first
		if info.Err != nil {
			continue // the ranks verify and tell
		}
		old, err := jobOf(info)
		if err != nil {
			return usageError{fmt.Errorf("snapshot %s: %w (use --fresh to start anew)", info.Path, err)}
		}
		return compare(info.Path, jobs.Differences(old, job), note)
	}
	return nil
}

// jobOf is the job that took a snapshot.
func jobOf(info snapshot.Info) (*jobs.Job, error) {
	var saved struct {
		Job json.RawMessage `json:"job"`
	}
	if err := json.Unmarshal(info.Meta.Extra, &saved); err != nil {
		return nil, fmt.Errorf("unreadable job description: %w", err)
	}
	return jobs.Decode(saved.Job)
}

// compare refuses or tells the differences.
func compare(path string, diffs jobs.DifferenceList, note func(string)) error {
	if refused := diffs.Refused(); len(refused) > 0 {
		return usageError{fmt.Errorf("snapshot %s is of another run: %s (use --fresh to start anew, or another snapshot.dir)", path, refused)}
	}
	for _, d := range diffs.Reported() {
		note("continuing with a changed job: " + d.String())
	}
	return nil
}

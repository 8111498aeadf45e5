package cli

import (
	"fmt"

	"ddp/data"
	"ddp/jobs"
	"ddp/model/train"
	"ddp/runtime/snapshot"
)

// continues checks that the newest snapshot in dir belongs to this job. What
// must agree and does not is an error that names it; what may differ (a new
// learning rate, more steps) is told, and the job file's value is used.
func continues(job *jobs.Job, set *data.Set, dir string, note func(string)) error {
	infos, err := snapshot.List(dir)
	if err != nil {
		return fmt.Errorf("look for snapshots: %w", err)
	}
	for _, info := range infos { // newest first
		if info.Err != nil {
			continue // the ranks verify and tell
		}
		saved, err := train.ReadSaved(info.Meta)
		if err != nil {
			return &train.MismatchError{Path: info.Path, What: err.Error()}
		}
		old, err := jobs.Decode(saved.Job)
		if err != nil {
			return &train.MismatchError{Path: info.Path, What: err.Error()}
		}
		if err := compare(info.Path, jobs.Differences(old, job), note); err != nil {
			return err
		}
		return saved.SameData(info.Path, set.Digest())
	}
	return nil
}

// compare refuses or tells the differences.
func compare(path string, diffs jobs.DifferenceList, note func(string)) error {
	if refused := diffs.Refused(); len(refused) > 0 {
		return &train.MismatchError{Path: path, What: "is of another run: " + refused.String()}
	}
	for _, d := range diffs.Reported() {
		note("continuing with a changed job: " + d.String())
	}
	return nil
}

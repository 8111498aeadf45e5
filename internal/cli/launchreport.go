package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ddp/runtime/elastic"
	"ddp/runtime/launch"
)

// reportLines is how many of the failed rank's last lines the report shows when
// it left no stack.
const reportLines = 20

// failureReport is what a failed launch ends with: the root cause, laid out as
// torchrun lays it out.
func failureReport(name string, f elastic.Failure, perNode, restarts int) string {
	const width = 60
	var b strings.Builder
	title := name + " FAILED"
	if restarts > 0 {
		title += fmt.Sprintf(" after %d restarts", restarts)
	}
	fmt.Fprintf(&b, "%s\n%s\n%s\nRoot Cause (first observed failure):\n", strings.Repeat("=", width), title, strings.Repeat("-", width))
	exit := fmt.Sprintf("%d (pid: %d)", f.ExitCode, f.PID)
	if f.Signal != "" {
		exit += " (" + f.Signal + ")"
	}
	file, said := "<N/A>", (*launch.Failure)(nil)
	if f.ErrorFile != "" {
		file = f.ErrorFile
		if text, err := launch.ReadErrorFile(f.ErrorFile); err == nil {
			said = launch.ParseErrorFile(text)
		}
	}
	for _, row := range [][2]string{
		{"time", f.Time.Format("2006-01-02_15:04:05")},
		{"host", f.Host},
		{"rank", fmt.Sprintf("%d (local_rank: %d)", f.Rank, f.Rank%perNode)},
		{"exitcode", exit},
		{"cause", f.Cause},
		{"last_op", f.LastOperation},
		{"error_file", file},
	} {
		if row[1] == "" {
			continue
		}
		fmt.Fprintf(&b, "  %-10s: %s\n", row[0], row[1])
	}
	switch {
	case said != nil && said.Stack != "":
		fmt.Fprintf(&b, "  %-10s: %s\n", "traceback", indented(strings.Split(strings.TrimSpace(said.Stack), "\n")))
	case len(f.LogTail) > 0:
		fmt.Fprintf(&b, "  %-10s: %s\n", "last lines", indented(f.LogTail[max(0, len(f.LogTail)-reportLines):]))
	}
	b.WriteString(strings.Repeat("=", width) + "\n")
	return b.String()
}

func indented(lines []string) string { return strings.Join(lines, "\n    ") }

// passErrorFile copies the root cause to our own error file, where a launcher
// above us looks for it; the exit code goes along, as torchrun's does.
func passErrorFile(f elastic.Failure) error {
	ours := os.Getenv("TORCHELASTIC_ERROR_FILE")
	if ours == "" || f.ErrorFile == "" {
		return nil
	}
	text, err := launch.ReadErrorFile(f.ErrorFile)
	if err != nil {
		return err
	}
	var file map[string]any
	if json.Unmarshal(text, &file) == nil {
		if message, ok := file["message"].(map[string]any); ok {
			message["errorCode"] = f.ExitCode
		}
		if text, err = json.Marshal(file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(ours), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("pass the error file on: %w", err)
	}
	if err := os.WriteFile(ours, text, 0o644); err != nil {
		return fmt.Errorf("pass the error file on: %w", err)
	}
	return nil
}

package cli

import (
	"errors"
	"os"
	"os/exec"
	"strings"
)

// commandLine is what each rank executes. As under torchrun a Python script or
// module runs under Python, without buffers; where "--" came before it, or
// --no-python, the command is run as it is.
func (f *launchFlags) commandLine(words []string, asIs bool) ([]string, error) {
	script := f.runPath || strings.HasSuffix(words[0], ".py") && !asIs
	if f.noPython || !f.module && !script {
		return words, runnable(words[0])
	}
	python := os.Getenv("PYTHON_EXEC")
	if python == "" {
		python = "python3"
	}
	if err := runnable(python); err != nil {
		return nil, err
	}
	if f.module {
		return append([]string{python, "-u", "-m"}, words...), nil
	}
	if _, err := os.Stat(words[0]); err != nil {
		return nil, launchUsage("%w", err)
	}
	return append([]string{python, "-u"}, words...), nil
}

// runnable finds the command before any process is started, so that a slip in
// its name is one line.
func runnable(name string) error {
	_, err := exec.LookPath(name)
	var reason *exec.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	if err == nil {
		return nil
	}
	hint := ""
	if strings.HasSuffix(name, ".py") {
		hint = " (without the -- before it, Python runs it)"
	}
	return launchUsage("cannot run %q: %w%s", name, err, hint)
}

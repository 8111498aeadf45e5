package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detachedVariable tells a launcher that it was detached: the number of the pipe
// on which its parent waits.
const detachedVariable = "DDP_DETACHED"

// parentLine is where a detached launcher tells its parent that the run has begun.
type parentLine struct{ pipe *os.File }

// detachedChild is this process's line to its parent, nil when it was not detached.
func detachedChild() *parentLine {
	fd, err := strconv.Atoi(os.Getenv(detachedVariable))
	os.Unsetenv(detachedVariable) // it is not for ranks
	if err != nil || fd < 3 {
		return nil
	}
	syscall.CloseOnExec(fd)
	return &parentLine{os.NewFile(uintptr(fd), "parent")}
}

// ready tells the parent the run's folder and lets it go.
func (l *parentLine) ready(f *runFolder) {
	if l == nil {
		return
	}
	_, _ = io.WriteString(l.pipe, f.path) // a parent that is gone needs nothing
	l.pipe.Close()
}

// detach starts this command line anew in a session of its own and returns when
// its run has begun. What goes wrong until then is told here.
func (in *invocation) detach() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	defer r.Close()
	said, err := os.CreateTemp("", "ddp-detach-")
	if err != nil {
		w.Close()
		return fmt.Errorf("detach: %w", err)
	}
	defer said.Close()
	defer os.Remove(said.Name())
	child := exec.Command("/proc/self/exe", append([]string{in.cmd.name}, in.words...)...)
	child.Args[0] = os.Args[0]
	child.Stderr = said
	child.ExtraFiles = []*os.File{w}
	child.Env = append(os.Environ(), detachedVariable+"=3")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = child.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	folder, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	if err := in.passOn(said.Name()); err != nil {
		return err
	}
	if len(folder) == 0 {
		err := child.Wait()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exitError{exit.ExitCode()} // it has said why
		}
		return fmt.Errorf("detach: the run ended before it began: %w", err)
	}
	fmt.Fprintf(in.stdout, "detached: process %d, folder %s\n", child.Process.Pid, folder)
	return child.Process.Release()
}

// passOn shows what the child has said.
func (in *invocation) passOn(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	_, err = io.Copy(in.stderr, bytes.NewReader(text))
	return err
}

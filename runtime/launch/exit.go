package launch

import (
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit is how a process ended.
type Exit struct {
	Code   int            // when Signal is 0
	Signal syscall.Signal // that killed it; 0: none
	Core   bool           // the kernel wrote a core file
}

// Status is the exit code as a shell would give it.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return ExitSignal(e.Signal)
	}
	return e.Code
}

// String puts it in words: "exit code 3", "killed by SIGSEGV (core dumped)".
func (e Exit) String() string {
	if e.Signal == 0 {
		return "exit code " + strconv.Itoa(e.Code)
	}
	text := "killed by " + SignalName(e.Signal)
	if e.Core {
		text += " (core dumped)"
	}
	return text
}

// SignalName is the signal's name, such as "SIGKILL"; "" for 0.
func SignalName(sig syscall.Signal) string {
	if sig == 0 {
		return ""
	}
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}

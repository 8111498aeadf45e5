package cli

import (
	"fmt"
	"runtime"
	"strings"

	"ddp/model/compute/cpu"
)

var versionCommand = command{
	name: "version", summary: "print version, Go version and the CPU paths of this machine",
	details: "Prints one fact a line.\n\nexample:\n  ddp version",
	run:     runVersion,
}

func runVersion(in *invocation) error {
	if _, err := in.parse(0); err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "ddp %s\ngo %s %s/%s\ncpu %s\n", Version, strings.TrimPrefix(runtime.Version(), "go"),
		runtime.GOOS, runtime.GOARCH, strings.Join(cpu.ISAs(), " "))
	return nil
}

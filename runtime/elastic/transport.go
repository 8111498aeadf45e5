package elastic

import (
	"fmt"
	"os"
	"os/exec"

	"ddp/runtime/launch"
)

// transport returns the command whose stdin and stdout lead to an agent on n's
// host. This function is all that knows how hosts are reached.
func transport(n Node, program string) (launch.Command, error) {
	if n.local() {
		return launch.Command{Path: "/proc/self/exe", Args: []string{os.Args[0]},
			Env: launch.Environment(os.Environ(), []string{launch.RoleVariable + "=" + launch.RoleAgent})}, nil
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return launch.Command{}, fmt.Errorf("reach host %s: %w", n.Host, err)
	}
	if program == "" {
		program = "ddp"
	}
	// A password prompt would wait for ever, a dead network too.
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", n.Host, "--",
		"env", launch.RoleVariable + "=" + launch.RoleAgent, program}
	return launch.Command{Path: ssh, Args: args, Env: os.Environ()}, nil
}

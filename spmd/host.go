package spmd

import (
	"fmt"
	"net"
	"os"
	"strings"
)

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// hostID names the set of processes that can share memory with this one and
// reach it by loopback: one boot of a kernel, one PID and one network namespace.
func hostID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("identify the host: %w", err)
	}
	id := strings.TrimSpace(string(boot))
	for _, ns := range []string{"pid", "net"} {
		name, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return "", fmt.Errorf("identify the host: %w", err)
		}
		id += " " + name
	}
	return id, nil
}

// addresses returns where peers may find a listener on this port: the given
// host, or every address of this machine, loopback last.
func addresses(host string, port int) ([]string, error) {
	text := fmt.Sprint(port)
	if host != "" {
		return []string{net.JoinHostPort(host, text)}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list network addresses: %w", err)
	}
	var out, loopback []string
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		switch {
		case !ok || n.IP.IsLinkLocalUnicast():
		case n.IP.IsLoopback():
			loopback = append(loopback, net.JoinHostPort(n.IP.String(), text))
		default:
			out = append(out, net.JoinHostPort(n.IP.String(), text))
		}
	}
	return append(out, loopback...), nil
}

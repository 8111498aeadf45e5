package cluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Leftovers lists what a job left on the host: processes, sockets, shared
// memory and temporary files. The ssh server's own listening socket and
// connections that the kernel is winding up are none.
func (h *Host) Leftovers() []string {
	if h.init == nil {
		return nil
	}
	var left []string
	for _, p := range h.Processes() {
		left = append(left, fmt.Sprintf("%s: process %d: %s", h.Name, p.PID, p.Line))
	}
	left = append(left, h.sockets()...)
	for _, dir := range []string{h.root() + "/dev/shm", h.Temp} {
		files, err := os.ReadDir(dir)
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", h.Name, err))
		}
		for _, f := range files {
			left = append(left, fmt.Sprintf("%s: file %s", h.Name, filepath.Join(dir, f.Name())))
		}
	}
	return left
}

// Of /proc/net/tcp: states in which some process holds a socket, as the kernel
// writes them.
var held = map[string]string{"01": "established", "02": "connecting", "08": "half closed", "0A": "listening"}

func (h *Host) sockets() []string {
	var left []string
	net := fmt.Sprintf("/proc/%d/net/", h.init.Process.Pid)
	for _, table := range []string{"tcp", "tcp6"} {
		eachLine(net+table, func(fields []string) {
			// sl local_address rem_address st ...
			if state := held[fields[3]]; state != "" && !strings.HasSuffix(fields[1], ":0016") {
				left = append(left, fmt.Sprintf("%s: %s socket %s to %s", h.Name, state, fields[1], fields[2]))
			}
		})
	}
	eachLine(net+"unix", func(fields []string) {
		if len(fields) > 7 && strings.Contains(fields[7], "ddp") {
			left = append(left, fmt.Sprintf("%s: socket %s", h.Name, fields[7]))
		}
	})
	return left
}

// eachLine calls f with the words of each line but the first.
func eachLine(path string, f func([]string)) {
	file, err := os.Open(path)
	if err != nil {
		return // a kernel without IPv6
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan()
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 3 {
			f(fields)
		}
	}
}

package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// PayloadFile returns a file without a name that holds payload. Open it anew for
// each child by way of its path under /proc.
func PayloadFile(payload []byte) (*os.File, error) {
	file, err := namelessFile("ddp-payload")
	if err != nil {
		return nil, fmt.Errorf("make payload file: %w", err)
	}
	if _, err := file.Write(payload); err != nil {
		file.Close()
		return nil, fmt.Errorf("fill payload file: %w", err)
	}
	return file, nil
}

// namelessFile is a file in memory that ends with the last who has it open.
func namelessFile(label string) (*os.File, error) {
	fd, err := unix.MemfdCreate(label, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), label), nil
}

// OutOfMemoryKills counts the processes that the kernel killed in our control
// group because memory ran out; false when the kernel does not say.
func OutOfMemoryKills() (int, bool) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for _, path := range memoryEventFiles(string(membership)) {
		if text, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", path)); err == nil {
			if n, ok := killCount(string(text)); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// memoryEventFiles lists where the counter may be, by /proc/self/cgroup: in
// version 1's memory hierarchy and in version 2's only one. A container sees its
// own group as the root.
func memoryEventFiles(membership string) []string {
	var files []string
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0" && parts[1] == "":
			files = append(files, filepath.Join(parts[2], "memory.events"), "memory.events")
		case parts[1] == "memory":
			files = append(files, filepath.Join("memory", parts[2], "memory.oom_control"), "memory/memory.oom_control")
		}
	}
	return files
}

// killCount reads the counter from a file of "name number" lines.
func killCount(text string) (int, bool) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "oom_kill" {
			n, err := strconv.Atoi(fields[1])
			return n, err == nil
		}
	}
	return 0, false
}

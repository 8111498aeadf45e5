package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// usableCores is how many cores this process may keep busy: the affinity mask,
// cut down to the cgroup's CPU quota where there is one.
func usableCores() int {
	cores := runtime.NumCPU() // counts the affinity mask
	if quota := cgroupCores(); quota > 0 {
		cores = min(cores, quota)
	}
	return cores
}

// cgroupCores is the quota of the innermost limited cgroup in whole cores, at
// least 1; 0 when there is none.
func cgroupCores() int {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := 0
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, q := range quotasAbove(parts[1], parts[2]) {
			if q > 0 && (least == 0 || q < least) {
				least = q
			}
		}
	}
	return least
}

// quotasAbove are the quotas of a cgroup and its parents; version 2 has no controllers named.
func quotasAbove(controllers, path string) []int {
	var out []int
	for p := filepath.Clean("/" + path); ; p = filepath.Dir(p) {
		if controllers == "" {
			out = append(out, readMax(filepath.Join("/sys/fs/cgroup", p, "cpu.max")))
		} else if strings.Contains(","+controllers+",", ",cpu,") {
			out = append(out, readQuota(filepath.Join("/sys/fs/cgroup", controllers, p)))
		}
		if p == "/" {
			return out
		}
	}
}

// readMax reads cgroup v2's "QUOTA PERIOD" in microseconds.
func readMax(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return 0
	}
	return wholeCores(fields[0], fields[1])
}

// readQuota reads cgroup v1's two files.
func readQuota(dir string) int {
	quota, err1 := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return 0
	}
	return wholeCores(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// wholeCores is quota/period, rounded down but at least 1; 0 for "max" or -1.
func wholeCores(quota, period string) int {
	q, err1 := strconv.Atoi(quota)
	p, err2 := strconv.Atoi(period)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return max(1, q/p)
}

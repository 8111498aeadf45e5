package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"ddp/runtime/launch"
)

// Host is a machine made of namespaces: network, processes, mounts, names and
// IPC. It shares the file system with us, but for /proc and /dev/shm.
type Host struct {
	Name    string
	Number  int    // of its links in the Network
	Address string // IPv4
	Temp    string // what its sessions have for TMPDIR

	rig  *Rig
	init *exec.Cmd // its first process, with which all others die
	port *port

	mu  sync.Mutex
	log []string
}

// bootScript is the first process of a host: it sets the host up, says so, and
// becomes the ssh server, or a process that sleeps where there is none.
const bootScript = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o size=256m tmpfs /dev/shm
hostname "$1"
read -r device
ip link set lo up
ip link set "$device" name eth0 mtu 9000 address "$2" up
ip addr add "$3/24" dev eth0
if [ -n "$4" ]; then exec "$4" -D -e -f "$5"; fi
echo up >&2
exec sleep infinity
`

// Boot starts the host, at first or after Kill. Its temporary files are gone then.
func (h *Host) Boot() {
	t := h.rig.t
	t.Helper()
	if err := os.RemoveAll(h.Temp); err != nil {
		t.Fatal(err)
	}
	err := os.Mkdir(h.Temp, 0o777)
	if err != nil {
		t.Fatal(err)
	}
	if h.port, err = openPort(h.Number); err != nil {
		t.Fatal(err)
	}
	daemon, config := "", ""
	if h.Number > 0 {
		daemon = sshd(t)
		config = h.rig.Write(h.Name+".sshd_config", h.rig.server([]string{"TMPDIR=" + h.Temp, "XDG_CACHE_HOME=" + h.Temp + ".cache"},
			"ListenAddress "+h.Address), 0o600)
	}
	h.init = exec.Command("/bin/sh", "-c", bootScript, "host", h.Name, fmt.Sprintf("%02x:00:00:00:00:%02x", macPrefix, h.Number), h.Address, daemon, config)
	h.init.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	stdin, err1 := h.init.StdinPipe()
	said, err2 := h.init.StderrPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := h.rig.spawn(h.init); err != nil {
		t.Fatalf("boot %s: %v", h.Name, err)
	}
	if out, err := exec.Command("ip", "link", "set", h.port.name, "netns", strconv.Itoa(h.init.Process.Pid)).CombinedOutput(); err != nil {
		t.Fatalf("give %s its network: %v %s", h.Name, err, out)
	}
	h.rig.Network.plug(h.port)
	if _, err := io.WriteString(stdin, h.port.name+"\n"); err != nil {
		t.Fatalf("boot %s: %v", h.Name, err)
	}
	up := make(chan struct{})
	h.rig.Network.wg.Go(func() { h.listen(said, up) })
	<-up
	if _, err := os.Stat(h.root()); err != nil {
		t.Fatalf("boot %s: %v %q", h.Name, err, h.Log())
	}
}

// listen keeps what the first process says, and closes up when the host is up,
// or has said its last.
func (h *Host) listen(said io.Reader, up chan struct{}) {
	once := sync.OnceFunc(func() { close(up) })
	defer once()
	for lines := bufio.NewScanner(said); lines.Scan(); {
		h.mu.Lock()
		h.log = append(h.log, lines.Text())
		h.mu.Unlock()
		if line := lines.Text(); line == "up" || strings.HasPrefix(line, "Server listening") {
			once()
		}
	}
}

// Log is what the host's ssh server has said.
func (h *Host) Log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.log, "\n")
}

// Kill ends the host as a power failure does: first no packet leaves it, then
// every process is gone.
func (h *Host) Kill() {
	if h.init == nil {
		return
	}
	h.rig.Network.unplug(h.port)
	_ = h.init.Process.Kill() // it runs until we wait
	_ = h.init.Wait()
	h.init = nil
}

// Command is a command that will run on the host in a folder.
func (h *Host) Command(dir, path string, args ...string) *exec.Cmd {
	words := append([]string{"-t", strconv.Itoa(h.init.Process.Pid), "-n", "-p", "-m", "-u", "-i", "--",
		"/bin/sh", "-c", `cd "$1" && shift && exec "$@"`, "sh", dir, path}, args...)
	cmd := exec.Command("nsenter", words...)
	cmd.Env = append(os.Environ(), "TMPDIR="+h.Temp, h.rig.path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Process is one that runs on a host; the number is ours, not the host's.
type Process struct {
	PID, Parent int
	Line        string // its command line
	Role        string // launch.RoleVariable in its environment
}

// Processes lists what runs on the host, but for its ssh server.
func (h *Host) Processes() []Process {
	if h.init == nil {
		return nil
	}
	here, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", h.init.Process.Pid))
	if err != nil {
		h.rig.t.Fatal(err)
	}
	spaces, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	var found []Process
	for _, link := range spaces {
		dir := filepath.Dir(filepath.Dir(link))
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if space, err := os.Readlink(link); err != nil || space != here || pid == h.init.Process.Pid {
			continue
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		if len(line) == 0 {
			continue // it is dead
		}
		p := Process{PID: pid, Parent: parentOf(dir), Line: strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))}
		env, _ := os.ReadFile(dir + "/environ")
		for entry := range strings.SplitSeq(string(env), "\x00") {
			if role, ok := strings.CutPrefix(entry, "DDP_ROLE="); ok {
				p.Role = role
			}
		}
		found = append(found, p)
	}
	return found
}

// parentOf reads the parent from a process's folder in /proc.
func parentOf(dir string) int {
	stat, _ := os.ReadFile(dir + "/stat")
	_, rest, _ := strings.Cut(string(stat), ") ") // the state and the parent follow
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0 // it is dead
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// Ranks lists the host's ranks.
func (h *Host) Ranks() []Process {
	return slices.DeleteFunc(h.Processes(), func(p Process) bool { return p.Role != launch.RoleRank })
}

// Agents lists the processes that ranks of the host have for a parent.
func (h *Host) Agents() []Process {
	all := h.Processes()
	return slices.DeleteFunc(slices.Clone(all), func(p Process) bool {
		return !slices.ContainsFunc(all, func(c Process) bool { return c.Role == launch.RoleRank && c.Parent == p.PID })
	})
}

// root is the host's file system.
func (h *Host) root() string { return fmt.Sprintf("/proc/%d/root", h.init.Process.Pid) }

package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// node is one `ddp launch` of several.
type node struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, stderr bytes.Buffer
}

// startNode starts one with a command line of flags, and a shell script.
func startNode(t *testing.T, dir, flags, script string) *node {
	t.Helper()
	args := append(append([]string{"launch"}, strings.Fields(flags)...), "--", "sh", "-c", script)
	n := &node{t: t, cmd: exec.Command(binary, args...)}
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = dir, &n.out, &n.stderr
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	})
	return n
}

// ends waits for the end and holds it against the exit code.
func (n *node) ends(code int) {
	n.t.Helper()
	_ = n.cmd.Wait() // the code says it
	if got := n.cmd.ProcessState.ExitCode(); got != code {
		n.t.Errorf("exit code %d, want %d\n%s%s", got, code, n.out.String(), n.stderr.String())
	}
}

// portNumber is the number of a freePort.
func portNumber(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// secretFlag is a file with a secret.
func secretFlag(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	write(t, path, secret+"\n")
	return " --rdzv-secret-file " + path
}

const goodSecret = "a secret of the right length"

// await returns once the file is there.
func await(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not there", path)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestLaunchThreeNodes starts the nodes in the wrong order, each with a command
// of its own, and finds them in the order of --node-rank.
func TestLaunchThreeNodes(t *testing.T) {
	dir := t.TempDir()
	flags := fmt.Sprintf("--nnodes 3 --nproc-per-node 2 --master-addr localhost --master-port %s --rdzv-id job --role of%%d --node-rank %%d", portNumber(t)) + secretFlag(t, goodSecret)
	const script = `echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $ROLE_NAME $TORCHELASTIC_RUN_ID $MASTER_ADDR:$MASTER_PORT`
	var nodes []*node
	for _, rank := range []int{2, 0, 1} {
		nodes = append(nodes, startNode(t, dir, fmt.Sprintf(flags, rank, rank), script))
	}
	for _, n := range nodes {
		n.ends(0)
	}
	lines := strings.Split(strings.TrimSpace(nodes[1].out.String()), "\n")
	slices.Sort(lines)
	port := ""
	for r, line := range lines {
		m := regexp.MustCompile(fmt.Sprintf(`^\[rank %d\] %d %d 6 %d 3 of%d job 127.0.0.1:(\d+)$`, r, r, r%2, r/2, r/2)).FindStringSubmatch(line)
		if m == nil || port != "" && m[1] != port {
			t.Errorf("rank %d: %q, port of the others %s", r, line, port)
			continue
		}
		port = m[1]
	}
	if len(lines) != 6 || nodes[1].stderr.Len() > 0 {
		t.Errorf("%d lines, stderr %q", len(lines), nodes[1].stderr.String())
	}
	noneLeft(t, dir)
}

// TestLaunchNodesFailTogether ends all nodes as the failed rank ended.
func TestLaunchNodesFailTogether(t *testing.T) {
	dir := t.TempDir()
	flags := fmt.Sprintf("--nnodes 2 --rdzv-backend c10d --rdzv-endpoint %s", freePort(t))
	const script = `if [ $RANK = 1 ]; then exit 7; fi; sleep 1000`
	a, b := startNode(t, dir, flags, script), startNode(t, dir, flags, script)
	a.ends(7)
	b.ends(7)
	both := a.stderr.String() + b.stderr.String()
	if !strings.Contains(both, "sh FAILED") || !strings.Contains(both, "ddp: the job ended with exit code 7: rank 1 on ") || strings.Count(both, `guesses --rdzv-id "none"`) != 2 {
		t.Error(both)
	}
	noneLeft(t, dir)
}

// TestLaunchElasticNodes kills one of two nodes and lets it come back; neither
// costs the job its end.
func TestLaunchElasticNodes(t *testing.T) {
	dir := t.TempDir()
	flags := fmt.Sprintf("--nnodes 1:2 --max-restarts 1 --rdzv-backend c10d --rdzv-id job --rdzv-endpoint localhost:%s --rdzv-conf is_host=%%s", portNumber(t)) + secretFlag(t, goodSecret)
	script := `touch up.$TORCHELASTIC_RESTART_COUNT.$WORLD_SIZE; if [ $TORCHELASTIC_RESTART_COUNT.$WORLD_SIZE != 1.2 ]; then sleep 1000; fi`
	lead := startNode(t, dir, fmt.Sprintf(flags, "true"), script)
	other := startNode(t, dir, fmt.Sprintf(flags, "false"), script)
	await(t, filepath.Join(dir, "up.0.2"))
	if err := other.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, filepath.Join(dir, "up.1.1"))
	startNode(t, dir, fmt.Sprintf(flags, "false"), script).ends(0)
	lead.ends(0)
	if text := lead.stderr.String(); !strings.Contains(text, "left: it was lost, now 1 ranks") || !strings.Contains(text, "joined: it joined, now 2 ranks") {
		t.Error(text)
	}
	noneLeft(t, dir)
}

// TestLaunchNodesRefuse tells what is wrong, in time.
func TestLaunchNodesRefuse(t *testing.T) {
	dir := t.TempDir()
	flags := fmt.Sprintf("--nnodes 2 --master-port %s --rdzv-conf join_timeout=%%s --node-rank %%d", portNumber(t))
	t.Run("alone", func(t *testing.T) {
		n := startNode(t, dir, fmt.Sprintf(flags, "0.2", 0)+secretFlag(t, goodSecret), "exit 0")
		n.ends(4)
		if text := n.stderr.String(); !strings.HasPrefix(text, "ddp: 1 of 2 nodes have come within 200ms: ") || strings.Count(text, "\n") != 1 {
			t.Error(text)
		}
	})
	t.Run("leaderless", func(t *testing.T) {
		n := startNode(t, dir, fmt.Sprintf(flags, "0.2", 1)+secretFlag(t, goodSecret), "exit 0")
		n.ends(4)
	})
	t.Run("secret", func(t *testing.T) {
		lead := startNode(t, dir, fmt.Sprintf(flags, "60", 0)+secretFlag(t, goodSecret), "exit 0")
		n := startNode(t, dir, fmt.Sprintf(flags, "60", 1)+secretFlag(t, strings.ToUpper(goodSecret)), "exit 0")
		n.ends(1)
		if text := n.stderr.String(); !strings.Contains(text, "the other side does not know the job's secret") {
			t.Error(text)
		}
		if err := lead.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		lead.ends(130)
		if text := lead.stderr.String(); !strings.HasPrefix(text, "ddp: a node that wanted to join was turned away: ") || strings.Count(text, "\n") != 1 {
			t.Error(text)
		}
	})
	t.Run("port", func(t *testing.T) {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		n := startNode(t, dir, fmt.Sprintf("--nnodes 2 --master-port %d", port)+secretFlag(t, goodSecret), "exit 0")
		n.ends(2)
		if text := n.stderr.String(); !strings.Contains(text, fmt.Sprintf("lead at 127.0.0.1:%d: ", port)) || !strings.Contains(text, "address already in use") {
			t.Error(text)
		}
	})
	noneLeft(t, dir)
}

// TestLaunchMasterPort gives the one node's ranks the port that was asked for.
func TestLaunchMasterPort(t *testing.T) {
	port := portNumber(t)
	out, _ := succeed(t, t.TempDir(), "launch", "--master-port", port, "--", "sh", "-c", "echo $MASTER_ADDR:$MASTER_PORT")
	if out != "127.0.0.1:"+port+"\n" {
		t.Errorf("%q, want port %s", out, port)
	}
}

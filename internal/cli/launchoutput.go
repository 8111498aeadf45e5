package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// streams is a set of a rank's streams, as torchrun numbers them.
type streams int

const (
	streamOut streams = 1
	streamErr streams = 2
)

// streamsByRank says which streams, of all local ranks or of some.
type streamsByRank struct {
	all   streams
	ranks map[int]streams // nil: all
}

// parseStreams reads 0 to 3, or LOCAL_RANK:0 to 3 for some ranks.
func parseStreams(flag, text string) (streamsByRank, error) {
	wrong := launchUsage("--%s is %q, want 0, 1 (stdout), 2 (stderr) or 3 (both), or LOCAL_RANK:NUMBER,...", flag, text)
	number := func(s string) (streams, bool) {
		n, err := strconv.Atoi(s)
		return streams(n), err == nil && len(s) == 1 && n <= 3
	}
	if n, ok := number(text); ok {
		return streamsByRank{all: n}, nil
	}
	by := streamsByRank{ranks: map[int]streams{}}
	for pair := range strings.SplitSeq(text, ",") {
		rank, value, _ := strings.Cut(pair, ":")
		n, ok := number(value)
		r, err := strconv.Atoi(rank)
		if !ok || err != nil || r < 0 {
			return by, wrong
		}
		by.ranks[r] = n
	}
	return by, nil
}

func (s streamsByRank) has(local int, stream streams) bool {
	if s.ranks != nil {
		return s.ranks[local]&stream != 0
	}
	return s.all&stream != 0
}

// launchConsole shows the ranks' lines, as far as they are to be seen.
type launchConsole struct {
	console
	redirects, tee streamsByRank
	prefix, role   string
	host           string
	shown          map[int]bool // local ranks; nil: all
	perNode        int
	alone          bool // the world has one rank
}

func newLaunchConsole(c console, f *launchFlags, perNode int, alone bool) (*launchConsole, error) {
	out := &launchConsole{console: c, prefix: f.prefix, role: f.role, perNode: perNode, alone: alone}
	out.host, _ = os.Hostname() // a name for people
	var err error
	if out.redirects, err = parseStreams("redirects", f.redirects); err != nil {
		return nil, err
	}
	if out.tee, err = parseStreams("tee", f.tee); err != nil {
		return nil, err
	}
	if out.prefix == "" {
		out.prefix = "[${role_name}${local_rank}]:"
	}
	if f.filter == "" {
		return out, nil
	}
	out.shown = map[int]bool{}
	for text := range strings.SplitSeq(f.filter, ",") {
		local, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || local < 0 {
			return nil, launchUsage("--local-ranks-filter is %q, want numbers as in 0,1", f.filter)
		}
		out.shown[local] = true
	}
	return out, nil
}

// line shows a line. All nodes have as many ranks, as under torchrun.
func (c *launchConsole) line(_, rank int, stream string, line []byte) {
	w, kind := c.stdout, streamOut
	if stream == "stderr" {
		w, kind = c.stderr, streamErr
	}
	local := rank % c.perNode
	switch teed := c.tee.has(local, kind); {
	case c.shown != nil && !c.shown[local], c.redirects.has(local, kind) && !teed:
	case teed:
		fmt.Fprintf(w, "%s%s\n", c.teePrefix(rank, local), line)
	case c.alone:
		fmt.Fprintf(w, "%s\n", line)
	default:
		fmt.Fprintf(w, "[rank %d] %s\n", rank, line)
	}
}

func (c *launchConsole) teePrefix(rank, local int) string {
	values := map[string]string{"role_name": c.role, "rank": strconv.Itoa(rank), "local_rank": strconv.Itoa(local), "hostname": c.host}
	return os.Expand(c.prefix, func(name string) string {
		if value, known := values[name]; known {
			return value
		}
		return "${" + name + "}"
	})
}

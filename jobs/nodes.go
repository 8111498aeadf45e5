package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

const (
	maxRanks = 4096 // of a node
	maxNodes = 4096
	maxGPU   = 1023
)

// ranks takes a number, or "auto", which reads as 0.
func ranks(field func(*Job) *int) kind {
	limits := between(1, maxRanks)
	return kind{`integer or "auto"`, limits,
		func(j *Job, v value) []fault {
			if v.kind == unstable.String && v.text == "auto" {
				*field(j) = 0
				return nil
			}
			if v.kind != unstable.Integer {
				return v.mistyped(`an integer or "auto"`)
			}
			return integer(1, maxRanks, field).read(j, v)
		},
		func(j *Job) string {
			if n := *field(j); n > 0 {
				return strconv.Itoa(n)
			}
			return `"auto"`
		},
	}
}

var nodeFields = []string{"host", "ranks", "gpus"}

// nodes takes a list of tables { host, ranks } or { host, gpus }.
func nodes() kind {
	return kind{"list of tables", "host, and ranks or gpus",
		func(j *Job, v value) []fault {
			if v.kind != unstable.Array {
				return v.fault("must be a list of tables, not "+v.kindName(), `as in [{ host = "a", ranks = 4 }]`)
			}
			if len(v.items) > maxNodes {
				return v.fault(fmt.Sprintf("must be at most %d nodes, not %d", maxNodes, len(v.items)), "")
			}
			var faults []fault
			list := make([]Node, len(v.items))
			hosts := map[string]bool{}
			for i, item := range v.items {
				faults = append(faults, readNode(item, &list[i], hosts)...)
			}
			if faults == nil {
				j.Cluster.Nodes = list
			}
			return faults
		},
		func(j *Job) string { return showNodes(j.Cluster.Nodes) },
	}
}

func readNode(item value, node *Node, hosts map[string]bool) []fault {
	if item.kind != unstable.InlineTable {
		return item.fault("a node must be a table, not "+item.kindName(), `as in { host = "a", ranks = 4 }`)
	}
	var faults []fault
	seen := map[string]bool{}
	for _, f := range item.fields {
		name := strings.Join(f.path, ".")
		if seen[name] {
			faults = append(faults, fault{f.at, fmt.Sprintf("%q is set twice for the same node", name), ""})
			continue
		}
		seen[name] = true
		faults = append(faults, readNodeField(f, name, node)...)
	}
	switch {
	case !seen["host"]:
		faults = append(faults, item.fault("the node has no host", "")...)
	case seen["ranks"] && seen["gpus"]:
		faults = append(faults, item.fault("the node has both ranks and gpus", "give one: a rank runs on each GPU")...)
	case node.Host != "" && hosts[node.Host]:
		faults = append(faults, item.fault(fmt.Sprintf("host %q is listed twice", node.Host), "")...)
	}
	hosts[node.Host] = true
	return faults
}

func readNodeField(f field, name string, node *Node) []fault {
	switch name {
	case "host":
		return readHost(f.value, node)
	case "ranks":
		return integer(1, maxRanks, func(*Job) *int { return &node.Ranks }).read(nil, f.value)
	case "gpus":
		return readGPUs(f.value, node)
	}
	return []fault{{f.at, fmt.Sprintf("a node has no key %q", name), didYouMean(nearest(name, nodeFields))}}
}

func readHost(v value, node *Node) []fault {
	if v.kind != unstable.String {
		return v.mistyped("a string")
	}
	if !ValidHost(v.text) {
		return v.fault(fmt.Sprintf("%q is not a host name", v.text), "a name, an address or user@name, without options")
	}
	node.Host = v.text
	return nil
}

// ValidHost tells whether ssh and shells take host for a name: it keeps out
// what ssh could take for an option or a shell for more than a word.
func ValidHost(host string) bool {
	if host == "" || len(host) > 253 || host[0] == '-' || strings.Contains(host, "@-") {
		return false
	}
	return !strings.ContainsFunc(host, func(c rune) bool {
		return !isNameRune(c) && !strings.ContainsRune("@:[]%", c)
	})
}

func readGPUs(v value, node *Node) []fault {
	if v.kind != unstable.Array || len(v.items) == 0 {
		return v.fault("gpus must be a list of device numbers", "as in gpus = [0, 1]")
	}
	var faults []fault
	list := make([]int, 0, len(v.items))
	for _, item := range v.items {
		n := 0
		if wrong := integer(0, maxGPU, func(*Job) *int { return &n }).read(nil, item); wrong != nil {
			faults = append(faults, wrong...)
			continue
		}
		if slices.Contains(list, n) {
			faults = append(faults, item.fault(fmt.Sprintf("GPU %d is listed twice", n), "")...)
		}
		list = append(list, n)
	}
	node.GPUs = list
	return faults
}

func showNodes(list []Node) string {
	items := make([]string, len(list))
	for i, n := range list {
		items[i] = "{ host = " + strconv.Quote(n.Host)
		if n.Ranks > 0 {
			items[i] += fmt.Sprintf(", ranks = %d", n.Ranks)
		}
		if n.GPUs != nil {
			items[i] += ", gpus = " + strings.Join(strings.Fields(fmt.Sprint(n.GPUs)), ", ")
		}
		items[i] += " }"
	}
	return "[" + strings.Join(items, ", ") + "]"
}

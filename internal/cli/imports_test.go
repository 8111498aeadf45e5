package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mayImport lists, for each group of packages, which other groups of ours its
// non-test code may import. Arrows point down only.
var mayImport = []struct {
	group string
	down  []string
	why   string
}{
	{"ddp", []string{"ddp/internal/cli"}, "main only calls cli"},
	{"ddp/internal/cli", []string{"ddp"}, "cli sees everything"},
	{"ddp/jobs", []string{"ddp/data", "ddp/model", "ddp/model/compute"}, "a job describes data and a model; neither knows it"},
	{"ddp/data", nil, "symbols come from files, not from models"},
	{"ddp/spmd/examples", []string{"ddp/spmd", "ddp/runtime/launch"}, "a user's program"},
	{"ddp/spmd", nil, "the SPMD library stands alone"},
	{"ddp/runtime/store", nil, "the store knows bytes"},
	{"ddp/runtime/observe", nil, "events are data"},
	{"ddp/runtime/snapshot", nil, "snapshots know named tensors, not models"},
	{"ddp/runtime/launch", []string{"ddp/spmd", "ddp/runtime/store"}, "a process finds its world"},
	{"ddp/runtime/seal", nil, "a sealed channel knows bytes and a secret"},
	{"ddp/runtime/ssh", []string{"ddp/runtime/launch"}, "ssh runs this program, whatever it does"},
	{"ddp/internal/cluster", []string{"ddp/runtime/launch"}, "hosts made for tests run any program"},
	{"ddp/runtime/elastic", []string{"ddp/spmd", "ddp/runtime/launch", "ddp/runtime/store", "ddp/runtime/seal", "ddp/runtime/ssh"}, "the control plane runs any command"},
	{"ddp/runtime/rendezvous", []string{"ddp/runtime/elastic"}, "nodes meet before a job begins"},
	{"ddp/model/compute", []string{"ddp/model/compute"}, "kernels know no model"},
	{"ddp/model/train", []string{"ddp/model", "ddp/model/compute", "ddp/data", "ddp/spmd", "ddp/runtime/snapshot", "ddp/runtime/observe"}, "the loop"},
	{"ddp/model", []string{"ddp/model/compute"}, "the model knows the compute interface only"},
}

// concrete are the packages that only cli may name.
var concrete = []string{"ddp/model/compute/ref", "ddp/model/compute/cpu"}

// TestImportsGoDownOnly holds every package against mayImport.
func TestImportsGoDownOnly(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "ddp/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		checkImports(t, p.ImportPath, p.Imports)
	}
}

func checkImports(t *testing.T, path string, imports []string) {
	rule := -1
	for i, r := range mayImport {
		if within(path, r.group) && (rule < 0 || len(r.group) > len(mayImport[rule].group)) {
			rule = i
		}
	}
	if rule < 0 {
		t.Errorf("%s belongs to no group of mayImport: decide what it may import", path)
		return
	}
	r := mayImport[rule]
	for _, imp := range imports {
		if !within(imp, "ddp") || within(imp, r.group) && r.group != "ddp" {
			continue
		}
		if !allowed(imp, r.down) {
			t.Errorf("%s imports %s, but %s", path, imp, r.why)
		}
		for _, c := range concrete {
			if imp == c && r.group != "ddp/internal/cli" && !within(path, "ddp/model/compute") {
				t.Errorf("%s names the concrete back end %s; only cli may", path, imp)
			}
		}
	}
}

func allowed(imp string, down []string) bool {
	for _, d := range down {
		if imp == d || d == "ddp" || d == "ddp/model/compute" && within(imp, d) {
			return true
		}
	}
	return false
}

func within(path, group string) bool { return path == group || strings.HasPrefix(path, group+"/") }

// TestRuntimeHoldsNoCode keeps the folder from shadowing the standard library's runtime.
func TestRuntimeHoldsNoCode(t *testing.T) {
	files, err := filepath.Glob("../../runtime/*.go")
	if err != nil || len(files) > 0 {
		t.Errorf("runtime/ itself holds code: %v %v", files, err)
	}
}

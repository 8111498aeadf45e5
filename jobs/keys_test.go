package jobs

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The table is complete and can document every key.
func TestKeysAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Name] {
			t.Errorf("%s is there twice", k.Name)
		}
		seen[k.Name] = true
		if k.Doc == "" || k.Type == "" {
			t.Errorf("%s lacks words: %+v", k.Name, k)
		}
		if (k.Default == "") == (k.Derived == "") {
			t.Errorf("%s needs a default or a word on how it is found, not both", k.Name)
		}
		for _, alias := range k.aliases {
			table, _ := splitKey(k.Name)
			if findKey(table+"."+alias) != nil {
				t.Errorf("%s: alias %s is a key", k.Name, alias)
			}
		}
	}
}

// Every field of Job has exactly one key: setting the key changes that field
// alone, and what show gives reads back to the same Job.
func TestKeysCoverTheJob(t *testing.T) {
	covered := map[string]string{}
	for _, k := range keyTable {
		for _, field := range changedBy(t, k) {
			if other, twice := covered[field]; twice {
				t.Errorf("%s and %s both set %s", k.Name, other, field)
			}
			covered[field] = k.Name
		}
	}
	for _, field := range leaves(reflect.ValueOf(Job{}), "") {
		if covered[field.name] == "" {
			t.Errorf("no key sets %s", field.name)
		}
	}
}

// other is a value that differs from the zero value of every key's field.
func other(k Key) string {
	switch {
	case k.Name == nodesKey:
		return `[{ host = "a", ranks = 2 }, { host = "b", gpus = [0, 3] }]`
	case k.Type == "boolean":
		return "true"
	case k.Type == "duration":
		return `"1m30s"`
	case strings.HasPrefix(k.Type, "list"):
		return "[0.5, 0.25]"
	case k.Type == "number":
		return "0.5"
	case k.Type == "string" && strings.HasPrefix(k.Range, `"`):
		return `"` + strings.SplitN(k.Range, `"`, 3)[1] + `"`
	case k.Name == "cluster.listen":
		return `":7077"`
	case k.Type == "string":
		return `"x"`
	}
	return "4"
}

func changedBy(t *testing.T, k Key) []string {
	t.Helper()
	var found Problems
	d := scan("test", 0, []byte(k.Name+" = "+other(k)), &found)
	j := &Job{}
	if faults := k.kind.read(j, d.entries[0].value); faults != nil || found != nil {
		t.Fatalf("%s = %s: %v %v", k.Name, other(k), faults, found)
	}
	if got := k.kind.show(j); got != other(k) {
		t.Errorf("%s = %s shows as %s", k.Name, other(k), got)
	}
	var changed []string
	before := leaves(reflect.ValueOf(Job{}), "")
	for i, after := range leaves(reflect.ValueOf(*j), "") {
		if !reflect.DeepEqual(before[i].value, after.value) {
			changed = append(changed, after.name)
		}
	}
	if len(changed) != 1 {
		t.Errorf("%s changes %v", k.Name, changed)
	}
	return changed
}

type leaf struct {
	name  string
	value any
}

// leaves lists a struct's fields, those of inner structs in their place.
func leaves(v reflect.Value, prefix string) []leaf {
	var list []leaf
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Name
		if v.Field(i).Kind() == reflect.Struct {
			list = append(list, leaves(v.Field(i), name+".")...)
		} else {
			list = append(list, leaf{name, v.Field(i).Interface()})
		}
	}
	return list
}

func TestNearest(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"train.batch_size", "train.batch"}, {"train.Batch", "train.batch"}, {"model.nlayer", "model.n_layer"},
		{"model.vocab", ""}, {"optimizer.beta2", "optimizer.betas"}, {"snapshot.evry", "snapshot.every"},
		{"nam", "name"}, {"train.learning_rate", "optimizer.lr"}, {"dta.split", "data.split"},
		{"x", ""}, {"", ""}, {strings.Repeat("y", 10000), ""},
	} {
		if got := nearestKey(c.name); got != c.want {
			t.Errorf("nearest to %.40q is %q, want %q", c.name, got, c.want)
		}
	}
}

// slowDistance is the recursion that editDistance tabulates.
func slowDistance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	x, y := a[len(a)-1], b[len(b)-1]
	change := slowDistance(a[:len(a)-1], b[:len(b)-1])
	if x != y {
		change++
	}
	least := min(slowDistance(a[:len(a)-1], b)+1, slowDistance(a, b[:len(b)-1])+1, change)
	if len(a) > 1 && len(b) > 1 && x == b[len(b)-2] && y == a[len(a)-2] {
		least = min(least, slowDistance(a[:len(a)-2], b[:len(b)-2])+1)
	}
	return least
}

func TestEditDistance(t *testing.T) {
	words := []string{"", "a", "ab", "ba", "abc", "acb", "cab", "kitten", "sitting", "batch", "bacth", "lr"}
	for _, a := range words {
		for _, b := range words {
			if got, want := editDistance(a, b), slowDistance(a, b); got != want {
				t.Errorf("%q to %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestTableNames(t *testing.T) {
	want := []string{"cluster", "recovery", "model", "data", "train", "optimizer", "snapshot", "sample"}
	if got := tableNames(); !slices.Equal(got, want) {
		t.Errorf("tables %v, want %v", got, want)
	}
}

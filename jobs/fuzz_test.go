package jobs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: whatever the text, the answer is a Job that can be passed on or
// problems of one line each inside the text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(designSample), "train.batch=8")
	f.Add([]byte(minimal), `model.preset="gpt-nano"`)
	for _, c := range broken {
		f.Add([]byte(c.file), "")
	}
	f.Add([]byte("[[cluster.nodes]]\nhost=\"a\"\n[cluster]\nnodes=3\n[[cluster.nodes]]\n"), "cluster.nodes=[[]]")
	f.Add([]byte("x = \"\\u00e9\"\n\"train\".'batch' = 1\nk = \"\"\"\n"), "a.b.c={d=[{}]}")
	f.Fuzz(func(t *testing.T, text []byte, set string) {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		j, err := Parse("j.toml", text, sets)
		if err == nil {
			checkJob(t, j)
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("error %v", err)
		}
		lines := strings.Split(string(text), "\n")
		for _, p := range problems {
			if p.Line < 0 || p.Line > len(lines) || p.Line > 0 && (p.Col < 1 || p.Col > len(lines[p.Line-1])+1) {
				t.Errorf("problem outside the text: %s", p)
			}
			if strings.ContainsAny(p.String(), "\n\r") {
				t.Errorf("problem of more than a line: %q", p)
			}
		}
	})
}

func checkJob(t *testing.T, j *Job) {
	t.Helper()
	encoded, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(j, back) {
		t.Errorf("%+v comes back as %+v", j, back)
	}
	if j.Train.Batch%j.Train.Shards != 0 || j.Model.Embed%j.Model.Heads != 0 || j.MaxRanks() > j.Train.Shards {
		t.Errorf("a job that cannot run: %+v", j)
	}
}

package jobs

import (
	"reflect"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	old := mustParse(t, designSample)
	for _, c := range []struct {
		sets              []string
		refused, reported string
	}{
		{nil, "", ""},
		{[]string{`name="x"`, "train.threads=2", "snapshot.keep=1", `cluster.nodes=[]`, `model.dropout=0.1`}, "", ""},
		{[]string{"optimizer.lr=1e-3", "train.max_steps=2000"}, "",
			"train.max_steps: 1000 in the snapshot, 2000 in the job; optimizer.lr: 0.0003 in the snapshot, 0.001 in the job"},
		{[]string{`model.preset="gpt-nano"`},
			"model.n_layer: 6 in the snapshot, 3 in the job; model.n_head: 6 in the snapshot, 3 in the job; model.n_embd: 192 in the snapshot, 48 in the job", ""},
		{[]string{"model.n_layer=6", "model.n_head=6", "model.n_embd=192"}, "", ""}, // the preset's sizes by themselves
		{[]string{`data.path="b.txt"`, "train.seed=1", "cluster.ranks=4"},
			`data.path: "corpus/opticks.txt" in the snapshot, "b.txt" in the job; train.seed: 1337 in the snapshot, 1 in the job`,
			"cluster.ranks: 2 in the snapshot, 4 in the job"},
		{[]string{"train.batch=32", "train.shards=16"}, "train.batch: 64 in the snapshot, 32 in the job; train.shards: 8 in the snapshot, 16 in the job", ""},
		{[]string{"model.dropout=0.2"}, "", "model.embd_pdrop: 0.1 in the snapshot, 0.2 in the job; model.resid_pdrop: 0.1 in the snapshot, 0.2 in the job; model.attn_pdrop: 0.1 in the snapshot, 0.2 in the job"},
		{[]string{"model.tied=false", `model.gelu="exact"`, "model.bias=false"},
			`model.tied: true in the snapshot, false in the job; model.bias: true in the snapshot, false in the job; model.gelu: "tanh" in the snapshot, "exact" in the job`, ""},
	} {
		now := mustParse(t, designSample, c.sets...)
		found := Differences(old, now)
		if got := found.Refused().String(); got != c.refused {
			t.Errorf("%v refused:\n%s\nwant\n%s", c.sets, got, c.refused)
		}
		if got := found.Reported().String(); got != c.reported {
			t.Errorf("%v reported:\n%s\nwant\n%s", c.sets, got, c.reported)
		}
		inModel := strings.Contains(c.refused, "model.")
		if same := old.ModelHash() == now.ModelHash(); same == inModel {
			t.Errorf("%v: same model hash %t", c.sets, same)
		}
		inData := strings.Contains(c.refused, "data.") || strings.Contains(c.refused, "train.")
		if same := old.DataHash() == now.DataHash(); same == inData {
			t.Errorf("%v: same data hash %t", c.sets, same)
		}
		computes := c.refused != "" || c.reported != ""
		if same := old.Hash() == now.Hash(); same == computes {
			t.Errorf("%v: same hash %t", c.sets, same)
		}
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	for _, file := range []string{minimal, designSample, minimal + "[snapshot]\nevery = \"10m\"\n[train]\nseed = 9223372036854775807\n"} {
		j := mustParse(t, file)
		text, err := j.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(j, back) {
			t.Errorf("%+v comes back as %+v", j, back)
		}
	}
	for _, text := range []string{"", "{", `{"Nam":1}`, `{"Name":1}`, "{} {}"} {
		if _, err := Decode([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "decode job: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

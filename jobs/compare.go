package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Difference is one key that a snapshot's job and the present one disagree on.
type Difference struct {
	Key      string
	Old, New string // as TOML; Old is the snapshot's
	Refused  bool   // the run cannot go on from the snapshot; else it may, and says so
}

// String is a line such as "optimizer.lr: 0.001 in the snapshot, 0.0003 in the job".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in the snapshot, %s in the job", d.Key, d.Old, d.New)
}

// DifferenceList is what Differences found, in the order of Keys.
type DifferenceList []Difference

// Differences compares a snapshot's job with the present one, key by key, those
// that don't change what is computed left out.
func Differences(old, now *Job) DifferenceList {
	var list DifferenceList
	for _, k := range keyTable {
		if k.Resume == Free {
			continue
		}
		if before, after := k.kind.show(old), k.kind.show(now); before != after {
			list = append(list, Difference{Key: k.Name, Old: before, New: after, Refused: k.Resume == MustAgree})
		}
	}
	return list
}

// Refused is those for which the run must be refused.
func (l DifferenceList) Refused() DifferenceList {
	return l.only(true)
}

// Reported is those with which the run may go on.
func (l DifferenceList) Reported() DifferenceList {
	return l.only(false)
}

func (l DifferenceList) only(refused bool) DifferenceList {
	var some DifferenceList
	for _, d := range l {
		if d.Refused == refused {
			some = append(some, d)
		}
	}
	return some
}

// String is all of them in one line, "; " between.
func (l DifferenceList) String() string {
	lines := make([]string, len(l))
	for i, d := range l {
		lines[i] = d.String()
	}
	return strings.Join(lines, "; ")
}

// ModelHash is the same for jobs whose models have the same shape and function:
// the SHA-256 (hex) of the keys of [model] that must agree. The vocabulary is
// the data's and not in it.
func (j *Job) ModelHash() string { return j.hash(MustAgree, "model.") }

// DataHash is the same for jobs that read the same windows in the same order,
// provided that their files hold the same (see data.Set.Digest): the SHA-256
// (hex) of the keys of [data] and [train] that must agree.
func (j *Job) DataHash() string { return j.hash(MustAgree, "data.", "train.") }

// Hash is the same for jobs that compute the same, at whatever world size: the
// SHA-256 (hex) of all keys that Differences compares, but for cluster.ranks.
func (j *Job) Hash() string { return j.hash(Reported, "model.", "data.", "train.", "optimizer.") }

func (j *Job) hash(least Resume, prefixes ...string) string {
	h := sha256.New()
	for _, k := range keyTable {
		inTable := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(k.Name, prefix) })
		if inTable && k.Resume >= least {
			io.WriteString(h, k.Name+" = "+k.kind.show(j)+"\n")
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

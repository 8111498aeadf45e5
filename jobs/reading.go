package jobs

import (
	"path/filepath"
	"slices"
	"strings"

	"ddp/data"
	"ddp/model"
)

// reading is a Job on its way from scanned documents to a complete one.
type reading struct {
	name  string // of the file
	job   *Job
	docs  []*document // the file, then each --set
	found *Problems
	given map[string]place // keys that the file or a flag sets, and where
	bad   map[string]bool  // keys with a wrong value: what depends on them is not judged
}

func newReading(name string, docs []*document, found *Problems) *reading {
	return &reading{name: name, job: defaults(), docs: docs, found: found, given: map[string]place{}, bad: map[string]bool{}}
}

// defaults is a Job with all defaults that depend on nothing.
func defaults() *Job {
	j := &Job{}
	for _, k := range keyTable {
		if k.Default == "" {
			continue
		}
		var found Problems
		d := scan("default", 0, []byte(k.Name+" = "+k.Default), &found)
		if found != nil || len(k.kind.read(j, d.entries[0].value)) > 0 {
			panic("jobs: bad default of " + k.Name + ": " + k.Default)
		}
	}
	return j
}

// read puts in the values of the file and then of each flag.
func (r *reading) read() {
	for _, d := range r.docs {
		for _, e := range d.entries {
			for _, f := range e.key.kind.read(r.job, e.value) {
				r.bad[e.key.Name] = true
				r.found.add(f.at, e.key.Name, f.message, f.hint)
			}
			r.given[e.key.Name] = e.at
		}
		d.checkStandard()
	}
}

func (r *reading) has(key string) bool {
	_, given := r.given[key]
	return given
}

func (r *reading) hasAny(keys ...string) bool { return slices.ContainsFunc(keys, r.has) }

// fail reports keys that do not fit together, at the first of them that was
// given, unless one of them is wrong by itself.
func (r *reading) fail(keys []string, message, hint string) {
	at := place{file: r.name, line: 1, col: 1}
	found := false
	for _, key := range keys {
		if r.bad[key] {
			return
		}
		if given, ok := r.given[key]; ok && !found {
			at, found = given, true
		}
	}
	r.found.add(at, keys[0], message, hint)
}

var sizeKeys = []string{"model.n_layer", "model.n_head", "model.n_embd"}

// settle decides between keys that stand for one another. A flag wins over the
// file; within one of them giving both is a contradiction.
func (r *reading) settle() {
	r.either([]string{"train.max_steps"}, []string{"train.max_epochs"})
	r.either([]string{"model.preset"}, sizeKeys)
}

func (r *reading) either(a, b []string) {
	if !r.hasAny(a...) || !r.hasAny(b...) {
		return
	}
	switch inFlagA, inFlagB := r.inFlag(a), r.inFlag(b); {
	case inFlagA && !inFlagB:
		r.forget(b)
	case inFlagB && !inFlagA:
		r.forget(a)
	default:
		first := slices.IndexFunc(b, r.has)
		r.fail([]string{b[first], a[0]}, "contradicts "+a[0], "give one of them")
	}
}

// inFlag reports whether any of the keys comes from a --set.
func (r *reading) inFlag(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return r.given[key].flag > 0 })
}

func (r *reading) forget(keys []string) {
	for _, key := range keys {
		delete(r.given, key)
	}
}

// resolve puts in the defaults that depend on other keys.
func (r *reading) resolve() {
	j := r.job
	if !r.has("name") {
		j.Name = nameOfFile(r.name)
	}
	if !r.has("snapshot.dir") {
		j.Snapshot.Dir = "runs/" + j.Name
	}
	if r.hasAny("snapshot.every_epochs", "snapshot.every") && !r.has("snapshot.every_steps") {
		j.Snapshot.EverySteps = 0
	} else if !r.has("snapshot.every_steps") {
		j.Snapshot.EverySteps = 100
	}
	if !r.has("train.max_epochs") {
		j.Train.MaxEpochs = 0
	}
	if !r.has("train.shards") || r.bad["train.shards"] {
		j.Train.Shards = 8
		for j.Train.Batch%j.Train.Shards != 0 {
			j.Train.Shards /= 2
		}
	}
	r.resolveModel()
	r.resolveNodes()
}

func (r *reading) resolveModel() {
	m := &r.job.Model
	switch preset, known := model.Preset(m.Preset); {
	case r.hasAny(sizeKeys...):
		m.Preset = ""
	case known:
		m.Layers, m.Heads, m.Embed = preset.Layers, preset.Heads, preset.Embed
	}
	for key, p := range map[string]*float64{
		"model.embd_pdrop": &m.EmbdDrop, "model.resid_pdrop": &m.ResidDrop, "model.attn_pdrop": &m.AttnDrop,
	} {
		if !r.has(key) {
			*p = m.Dropout
		}
	}
	if !r.has("model.block_size") {
		m.BlockSize = r.blockSize()
	}
}

// blockSize is the default: what the task's sequences need.
func (r *reading) blockSize() int {
	switch d := r.job.Data; d.Source {
	case "adder":
		return data.AdderBlock(d.Digits)
	case "sort":
		return data.SortBlock(d.Length)
	}
	return 128
}

func (r *reading) resolveNodes() {
	c := &r.job.Cluster
	hasMin, hasMax := r.has("cluster.min_nodes"), r.has("cluster.max_nodes")
	listed := max(1, len(c.Nodes))
	if !hasMin {
		c.MinNodes = listed
		if hasMax {
			c.MinNodes = min(listed, c.MaxNodes)
		}
	}
	switch {
	case hasMax:
	case c.Grows():
		c.MaxNodes = maxNodes
	default:
		c.MaxNodes = max(listed, c.MinNodes)
	}
}

// nameOfFile is a valid job name for any path.
func nameOfFile(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), ".toml")
	name := strings.Map(func(c rune) rune {
		if isNameRune(c) {
			return c
		}
		return '-'
	}, base)
	name = strings.TrimLeft(name, "._-")
	if len(name) > 100 {
		name = name[:100]
	}
	if name == "" {
		return "job"
	}
	return name
}

package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// nodesKey is the one key that is a list of tables.
const nodesKey = "cluster.nodes"

// unknownTable is the current table after a header that makes no sense: its
// keys are passed over, since the header has been reported.
const unknownTable = "?"

// entry is one known key that a document sets.
type entry struct {
	key   *Key
	at    place // of the key
	value value
}

// document is what scanning one file or one --set has found.
type document struct {
	file  string
	flag  int
	text  []byte
	lines []int // where each line begins
	found *Problems

	table   string // the current one: "", "train", nodesKey within [[cluster.nodes]], or unknownTable
	entries []entry
	tables  map[string]place // headers seen
	broken  bool             // the TOML itself is wrong: what is missing may only look so
}

// scan reads TOML into entries. It reports wrong syntax, and tables and keys
// that are unknown or there twice; values it leaves to their kinds.
func scan(file string, flag int, text []byte, found *Problems) *document {
	d := newDocument(file, flag, text, found)
	d.parse()
	return d
}

func newDocument(file string, flag int, text []byte, found *Problems) *document {
	d := &document{file: file, flag: flag, text: text, lines: []int{0}, found: found, tables: map[string]place{}}
	for at, c := range text {
		if c == '\n' {
			d.lines = append(d.lines, at+1)
		}
	}
	return d
}

// parse goes on after a line of wrong syntax, so that one slip does not hide
// the next; the errors that directly follow it are taken for its echo.
func (d *document) parse() {
	var p unstable.Parser
	echo := false
	for rest := d.text; ; {
		p.Reset(rest)
		for p.NextExpression() {
			d.expression(&p, p.Expression())
			echo = false
		}
		var wrong *unstable.ParserError
		if !errors.As(p.Error(), &wrong) {
			return
		}
		at := d.offset(wrong.Highlight)
		if !echo {
			d.syntax(wrong, at)
		}
		echo = true
		end := bytes.IndexByte(d.text[at:], '\n')
		if end < 0 {
			return
		}
		rest = d.text[at+end+1:]
	}
}

// syntax reports the parser's error. A broken header leaves no table known.
func (d *document) syntax(wrong *unstable.ParserError, at int) {
	d.broken = true
	message, hint := wrong.Message, ""
	if strings.HasPrefix(message, "expected keyword") || strings.HasSuffix(message, "at start of value") || message == "strings must be quoted" {
		message, hint = "this is not a TOML value", `text needs quotes, as in "corpus/a.txt"`
	}
	d.found.add(d.placeAt(at), "", message, hint)
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1:]
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("[")) {
		d.table = unknownTable
	}
}

// checkStandard holds the text against the full TOML reader, which knows rules
// that need no schema, such as the form of dates and numbers. It comes last, to
// say only what nothing else has said.
func (d *document) checkStandard() {
	var wrong *toml.DecodeError
	if err := toml.Unmarshal(d.text, &map[string]any{}); d.broken || !errors.As(err, &wrong) {
		return
	}
	line, col := wrong.Position()
	at := place{file: d.file, flag: d.flag}
	if d.flag == 0 {
		at.line, at.col = line, col
	}
	for _, p := range *d.found {
		if p.flag == d.flag && (p.Line == at.line || d.flag > 0) {
			return // said already, in our words
		}
	}
	d.broken = true
	d.found.add(at, "", strings.TrimPrefix(wrong.Error(), "toml: "), "")
}

func (d *document) expression(p *unstable.Parser, node *unstable.Node) {
	switch node.Kind {
	case unstable.Table, unstable.ArrayTable:
		path, at := d.keyPath(p, node.Key())
		d.header(strings.Join(path, "."), at, node.Kind == unstable.ArrayTable)
	case unstable.KeyValue:
		f := d.field(p, node)
		switch {
		case d.table == unknownTable:
		case d.table == nodesKey:
			items := d.entryOf(nodesKey).value.items
			last := &items[len(items)-1]
			last.fields = append(last.fields, f)
		case d.table == "":
			d.assign(strings.Join(f.path, "."), f)
		default:
			d.assign(d.table+"."+strings.Join(f.path, "."), f)
		}
	}
}

// header opens [name], or [[name]] when list is set.
func (d *document) header(name string, at place, list bool) {
	d.table = name
	first, again := d.tables[name]
	switch {
	case name == nodesKey && list:
		d.nodesItem(at)
		return
	case name == nodesKey:
		d.found.add(at, name, "is a list of tables", "write [["+name+"]]")
		d.table = unknownTable
	case findKey(name) != nil:
		d.found.add(at, name, "is a key, not a table", "")
		d.table = unknownTable
	case !isTable(name):
		d.found.add(at, "", "unknown table ["+name+"]", didYouMean(bracketed(nearest(name, tableNames()))))
		d.table = unknownTable
	case list:
		d.found.add(at, "", "table ["+name+"] is not a list", "write ["+name+"]")
	case again:
		d.found.add(at, "", "table ["+name+"] is there twice"+first.reference(), "")
	}
	if !again {
		d.tables[name] = at
	}
}

// nodesItem starts one more [[cluster.nodes]].
func (d *document) nodesItem(at place) {
	item := value{kind: unstable.InlineTable, at: at}
	e := d.entryOf(nodesKey)
	if e == nil {
		d.assign(nodesKey, field{at: at, value: value{kind: unstable.Array, at: at}})
		e = d.entryOf(nodesKey)
	}
	e.value.kind = unstable.Array
	e.value.items = append(e.value.items, item)
}

// assign records name = value, or reports why not. An inline table stands for its keys.
func (d *document) assign(name string, f field) {
	key := findKey(name)
	switch {
	case isTable(name) && f.value.kind == unstable.InlineTable:
		d.tables[name] = f.at
		for _, inner := range f.value.fields {
			d.assign(name+"."+strings.Join(inner.path, "."), inner)
		}
	case isTable(name):
		d.found.add(f.value.at, name, "is a table, not "+f.value.kindName(), "write its keys below ["+name+"]")
	case key == nil:
		d.found.add(f.at, name, "unknown key", didYouMean(nearestKey(name)))
	case d.entryOf(name) != nil:
		d.found.add(f.at, name, "is set twice"+d.entryOf(name).at.reference(), "")
	default:
		d.entries = append(d.entries, entry{key, f.at, f.value})
	}
}

func (d *document) entryOf(name string) *entry {
	for i := range d.entries {
		if d.entries[i].key.Name == name {
			return &d.entries[i]
		}
	}
	return nil
}

// field converts a key-value node; the parser's own nodes do not outlive it.
func (d *document) field(p *unstable.Parser, node *unstable.Node) field {
	path, at := d.keyPath(p, node.Key())
	return field{path: path, at: at, value: d.value(p, node.Value(), at)}
}

// value converts a value node. Lists carry no place of their own: they get that
// of what is around them.
func (d *document) value(p *unstable.Parser, node *unstable.Node, around place) value {
	v := value{kind: node.Kind, text: string(node.Data), at: around}
	if node.Raw.Length > 0 {
		v.at = d.placeAt(d.offset(p.Raw(node.Raw)))
	}
	children := node.Children()
	switch node.Kind {
	case unstable.Array:
		for children.Next() {
			v.items = append(v.items, d.value(p, children.Node(), v.at))
		}
	case unstable.InlineTable:
		for children.Next() {
			v.fields = append(v.fields, d.field(p, children.Node()))
		}
	}
	return v
}

func (d *document) keyPath(p *unstable.Parser, parts unstable.Iterator) (path []string, at place) {
	for parts.Next() {
		node := parts.Node()
		if path == nil {
			at = d.placeAt(d.offset(p.Raw(node.Raw)))
		}
		path = append(path, string(node.Data))
	}
	return path, at
}

// offset is where part, a slice of the text, begins in it: slices of one array
// that nothing was cut from at its end differ in capacity by their distance.
func (d *document) offset(part []byte) int {
	return min(max(cap(d.text)-cap(part), 0), len(d.text))
}

func (d *document) placeAt(offset int) place {
	at := place{file: d.file, flag: d.flag}
	if d.flag > 0 {
		return at
	}
	line, starts := slices.BinarySearch(d.lines, offset)
	if !starts {
		line--
	}
	at.line = 1 + line
	at.col = 1 + utf8.RuneCount(d.text[d.lines[line]:offset])
	return at
}

// reference points back at a place from a message.
func (p place) reference() string {
	if p.line == 0 {
		return ""
	}
	return fmt.Sprintf(", first in line %d", p.line)
}

func bracketed(name string) string {
	if name == "" {
		return ""
	}
	return "[" + name + "]"
}

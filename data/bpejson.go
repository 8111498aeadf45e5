package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxTokens is the largest vocabulary that is taken; GPT-2's has 50,257 tokens.
const maxTokens = 1 << 22

// hubFile is Hugging Face's tokenizer.json, as far as it matters here.
type hubFile struct {
	Version      string          `json:"version"`
	Truncation   json.RawMessage `json:"truncation"`
	Padding      json.RawMessage `json:"padding"`
	Added        []addedToken    `json:"added_tokens"`
	Normalizer   json.RawMessage `json:"normalizer"`
	PreTokenizer *byteLevel      `json:"pre_tokenizer"`
	PostProcess  json.RawMessage `json:"post_processor"`
	Decoder      *byteLevel      `json:"decoder"`
	Model        *hubModel       `json:"model"`
}

type addedToken struct {
	ID         int64  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// byteLevel is the step from text to bytes and back.
type byteLevel struct {
	Type           string `json:"type"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	TrimOffsets    bool   `json:"trim_offsets"`
	UseRegex       *bool  `json:"use_regex"` // absent: true
}

type hubModel struct {
	Type         string     `json:"type"`
	Dropout      *float64   `json:"dropout"`
	Unknown      *string    `json:"unk_token"`
	Prefix       *string    `json:"continuing_subword_prefix"`
	Suffix       *string    `json:"end_of_word_suffix"`
	FuseUnknown  bool       `json:"fuse_unk"`
	ByteFallback bool       `json:"byte_fallback"`
	IgnoreMerges bool       `json:"ignore_merges"`
	Vocab        vocabulary `json:"vocab"`
	Merges       []hubMerge `json:"merges"`
}

// vocabulary is the names of the tokens by their numbers; as JSON, an object
// from names to numbers.
type vocabulary map[int64]string

// hubMerge is the names of a pair: ["a", "b"], or "a b" in older files.
type hubMerge [2]string

// vocabularyOf numbers the names in their order.
func vocabularyOf(names []string) vocabulary {
	v := make(vocabulary, len(names))
	for id, name := range names {
		v[int64(id)] = name
	}
	return v
}

// MarshalJSON lists the tokens in their order; the vocabulary must have no gaps.
func (v vocabulary) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for id := range int64(len(v)) {
		if id > 0 {
			b.WriteByte(',')
		}
		quoted, err := plainJSON(v[id])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%d", quoted, id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (v *vocabulary) UnmarshalJSON(text []byte) error {
	var ids map[string]int64
	if err := json.Unmarshal(text, &ids); err != nil {
		return errors.New("want an object from tokens to numbers")
	}
	*v = make(vocabulary, len(ids))
	for name, id := range ids {
		if err := v.set(id, name); err != nil {
			return err
		}
	}
	return nil
}

// set gives a token its name.
func (v vocabulary) set(id int64, name string) error {
	switch taken, is := v[id]; {
	case id < 0 || id >= maxTokens:
		return fmt.Errorf("token %q has the number %d, want 0 to %d", name, id, maxTokens-1)
	case is && taken != name:
		return fmt.Errorf("tokens %q and %q both have the number %d", min(taken, name), max(taken, name), id)
	}
	v[id] = name
	return nil
}

// names is the tokens' names in their order; gaps are refused.
func (v vocabulary) names() ([]string, error) {
	if len(v) == 0 {
		return nil, errors.New("the vocabulary is empty")
	}
	names := make([]string, len(v))
	for id := range names {
		name, is := v[int64(id)]
		if !is {
			return nil, fmt.Errorf("token %d is missing, of %d tokens", id, len(v))
		}
		names[id] = name
	}
	return names, nil
}

func (m *hubMerge) UnmarshalJSON(text []byte) error {
	var line string
	if json.Unmarshal(text, &line) == nil {
		var err error
		*m, err = splitMerge(line)
		return err
	}
	var names []string
	if err := json.Unmarshal(text, &names); err != nil || len(names) != 2 {
		return fmt.Errorf("a merge is not two tokens: %.60s", text)
	}
	*m = hubMerge(names)
	return nil
}

// splitMerge reads "a b".
func splitMerge(line string) (hubMerge, error) {
	left, right, cut := strings.Cut(line, " ")
	if !cut || left == "" || right == "" || strings.Contains(right, " ") {
		return hubMerge{}, fmt.Errorf("a merge is not two tokens with a blank between: %.60q", line)
	}
	return hubMerge{left, right}, nil
}

// plainJSON is v as JSON with <, > and & as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isHubFile tells tokenizer.json from our own files.
func isHubFile(text []byte) bool {
	var probe struct {
		Model json.RawMessage `json:"model"`
	}
	return json.Unmarshal(text, &probe) == nil && probe.Model != nil
}

// loadHubFile reads a tokenizer.json that does what GPT-2's does; one that
// would give other tokens is refused.
func loadHubFile(text []byte) (*BPE, error) {
	var f hubFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, plainFault(err)
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	p := bpeParts{}
	for _, added := range f.Added {
		if err := f.Model.Vocab.set(added.ID, added.Content); err != nil {
			return nil, err
		}
		p.special = append(p.special, added.Content)
	}
	var err error
	if p.names, err = f.Model.Vocab.names(); err != nil {
		return nil, err
	}
	for _, m := range f.Model.Merges {
		p.merges = append(p.merges, m)
	}
	return newBPE(p)
}

// plainFault says of a wrong type what a user needs, without the names of Go.
func plainFault(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s must not be a %s", wrong.Field, wrong.Value)
	}
	return err
}

// check refuses what GPT-2's tokenizer does not do.
func (f *hubFile) check() error {
	m, pre := f.Model, f.PreTokenizer
	switch {
	case m == nil:
		return errors.New("there is no model")
	case m.Vocab == nil:
		return errors.New("the model has no vocabulary")
	case m.Type != "" && m.Type != "BPE":
		return fmt.Errorf("the model is a %.40q, want BPE", m.Type)
	case isSet(f.Normalizer):
		return errors.New("it has a normalizer, which GPT-2's tokenizer has not")
	case pre == nil || pre.Type != "ByteLevel" || pre.UseRegex != nil && !*pre.UseRegex:
		return errors.New("the pre_tokenizer is not GPT-2's, ByteLevel with its own pattern")
	case pre.AddPrefixSpace:
		return errors.New("the pre_tokenizer puts a blank before each text: make it with add_prefix_space=False")
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("the model has a dropout of %v, want none", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		return errors.New("the model marks the parts of words (continuing_subword_prefix, end_of_word_suffix), which GPT-2's does not")
	case m.ByteFallback || m.IgnoreMerges:
		return errors.New("the model has byte_fallback or ignore_merges, which GPT-2's has not")
	}
	for _, added := range f.Added {
		if !added.Special || added.SingleWord || added.LStrip || added.RStrip {
			return fmt.Errorf("added token %.60q is not a plain special token (special, not single_word, lstrip or rstrip)", added.Content)
		}
	}
	return nil
}

func isSet(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// Marshal is Hugging Face's tokenizer.json; see Tokenizer.
func (t *BPE) Marshal() ([]byte, error) {
	pattern := true
	f := hubFile{
		Version:      "1.0",
		Added:        []addedToken{},
		PreTokenizer: &byteLevel{Type: "ByteLevel", TrimOffsets: true, UseRegex: &pattern},
		Decoder:      &byteLevel{Type: "ByteLevel", AddPrefixSpace: true, TrimOffsets: true, UseRegex: &pattern},
		Model:        &hubModel{Type: "BPE", Vocab: vocabularyOf(t.names), Merges: []hubMerge{}},
	}
	for _, id := range t.special {
		f.Added = append(f.Added, addedToken{ID: int64(id), Content: t.names[id], Special: true})
	}
	for _, p := range t.order {
		f.Model.Merges = append(f.Model.Merges, hubMerge{t.names[p.left], t.names[p.right]})
	}
	text, err := plainJSON(f)
	if err != nil {
		return nil, fmt.Errorf("write tokenizer.json: %w", err)
	}
	return text, nil
}

package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Encode is the complete job as JSON, for the launcher's payload and for
// snapshots. Decode gives back an equal Job.
func (j *Job) Encode() ([]byte, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	return text, nil
}

// Decode reads what Encode wrote. A field that this version does not know is an
// error, since ignoring it would change the job.
func Decode(text []byte) (*Job, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	j := &Job{}
	if err := decoder.Decode(j); err != nil {
		return nil, fmt.Errorf("decode job: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("decode job: text after the JSON object")
	}
	return j, nil
}

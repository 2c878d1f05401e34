package message

import (
	"bytes"
	"encoding/json"
	"strconv"
)

const (
	returnBegins = `{"message_type":"tool_return_message",`
	mirrorBegins = `,"result":`
)

// Recorder encodes a completed return for the journal, without mirrored fields. The journal assigns
// seq.
func (r ToolReturn) Recorder() (record func(seq int64) []byte, err error) {
	type whole ToolReturn
	text, err := Encode(struct {
		whole
		Result      *int `json:"result,omitempty"`
		ToolReturns *int `json:"tool_returns,omitempty"`
		SeqID       *int `json:"seq_id,omitempty"`
	}{whole: whole(r)})
	if err != nil {
		return nil, err
	}
	return func(seq int64) []byte {
		b := append(bytes.Clone(text[:len(text)-1]), `,"seq_id":`...)
		return append(strconv.AppendInt(b, seq, 10), '}')
	}, nil
}

// A Record is a journaled message: its frame, or a return without mirrored fields.
type Record []byte

// Whole returns a recorded return's frame, and anything else unchanged.
func (record Record) Whole() []byte {
	if !bytes.HasPrefix(record, []byte(returnBegins)) || bytes.Contains(record, []byte(mirrorBegins)) {
		return record
	}
	r, err := record.Return()
	if err != nil {
		return record
	}
	frame, err := Encode(r)
	if err != nil {
		return record
	}
	return frame
}

// Return decodes a recorded return or its frame.
func (record Record) Return() (r ToolReturn, err error) {
	if err := json.Unmarshal(record, &r); err != nil {
		return ToolReturn{}, err
	}
	if r.ToolReturns == nil && r.Result == "" {
		r.mirror()
	}
	return r, nil
}

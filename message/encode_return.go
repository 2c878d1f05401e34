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

// Recorder encodes a return of Complete for the journal, which assigns its number: without the fields that
// mirror others. Record.Whole restores the frame.
func (r ToolReturn) Recorder() (record func(seq int64) []byte, err error) {
	type whole ToolReturn
	text, err := Encode(struct {
		whole
		Result      *int `json:"result,omitempty"` // these hide those of whole
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

// A Record is a message as the journal contains it: a return without the fields that
// mirror others, anything else as its frame.
type Record []byte

// Whole returns the frame of a recorded return. It returns anything else unchanged.
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

// Return decodes a recorded return, or its frame.
func (record Record) Return() (r ToolReturn, err error) {
	if err := json.Unmarshal(record, &r); err != nil {
		return ToolReturn{}, err
	}
	if r.ToolReturns == nil && r.Result == "" {
		r.mirror()
	}
	return r, nil
}

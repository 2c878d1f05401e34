package message

import (
	"bytes"
	"encoding/json"
	"time"
)

// Listed converts a recorded message to that of list_messages: a return is complete; a
// request has its call in tool_calls too, with arguments as text; dates have milliseconds,
// and no field is an empty string. It returns an invalid record unchanged.
func (record Record) Listed() []byte {
	if whole := record.Whole(); !bytes.Equal(whole, record) {
		return whole
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(record, &fields) != nil || fields["date"] == nil || fields["tool_return"] != nil {
		return record
	}
	for name, value := range fields {
		if string(value) == `""` {
			delete(fields, name)
		}
	}
	var text string
	if json.Unmarshal(fields["date"], &text) == nil {
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			fields["date"] = json.RawMessage(`"` + date(at) + `"`)
		}
	}
	call := map[string]json.RawMessage{}
	if json.Unmarshal(fields["tool_call"], &call) == nil && call["arguments"] != nil {
		if call["arguments"][0] != '"' {
			call["arguments"], _ = Encode(string(call["arguments"])) // cannot fail
		}
		one, err := Encode(call)
		if err != nil {
			return record
		}
		fields["tool_call"] = one
		fields["tool_calls"] = append(append(json.RawMessage{'['}, one...), ']')
	}
	listed, err := Encode(fields)
	if err != nil {
		return record
	}
	return listed
}

package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

func shared() []string {
	return []string{"id", "date", "name", "message_type", "otid", "sender_id", "step_id", "is_err", "seq_id", "run_id"}
}

// own returns the additional fields of a message type; nil for types that are not recorded.
func own(messageType string) []string {
	switch messageType {
	case "approval_request_message":
		return []string{"tool_call", "tool_calls"}
	case "approval_response_message":
		return []string{"approvals", "approve", "approval_request_id", "reason"}
	case "tool_return_message":
		return []string{"tool_return", "status", "tool_call_id", "stdout", "stderr", "tool_returns"}
	}
	return nil
}

// History converts a record to a message of the Letta API with exactly its fields, null if absent. Invalid records are
// returned as by Listed.
func (record Record) History() []byte {
	listed := record.Listed()
	fields := map[string]json.RawMessage{}
	var kind struct {
		Type string `json:"message_type"`
	}
	if json.Unmarshal(listed, &fields) != nil || json.Unmarshal(listed, &kind) != nil {
		return listed
	}
	for _, name := range []string{"tool_call", "tool_calls"} {
		if raw, ok := fields[name]; ok {
			fields[name] = familyCalls(raw)
		}
	}
	names := append(shared(), own(kind.Type)...)
	for name := range fields {
		if own(kind.Type) != nil && !slices.Contains(names, name) {
			delete(fields, name)
		}
	}
	for _, name := range names {
		if fields[name] == nil {
			fields[name] = json.RawMessage("null")
		}
	}
	text, err := Encode(fields)
	if err != nil {
		return listed
	}
	return text
}

type familyCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	CallID    string `json:"tool_call_id"`
}

func familyCalls(raw json.RawMessage) json.RawMessage {
	type recorded struct {
		familyCall
		ToolName string `json:"tool_name"`
	}
	var one recorded
	var many []recorded
	single := json.Unmarshal(raw, &one) == nil
	if single {
		many = []recorded{one}
	} else if json.Unmarshal(raw, &many) != nil {
		return raw
	}
	calls := make([]familyCall, len(many))
	for i, c := range many {
		calls[i] = c.familyCall
		calls[i].Name = cmp.Or(c.Name, c.ToolName)
	}
	var v any = calls
	if single {
		v = calls[0]
	}
	text, err := Encode(v)
	if err != nil {
		return raw
	}
	return text
}

// Listed converts a record to its form in list_messages: complete returns, arguments as text, dates in milliseconds,
// no empty strings. Invalid records are returned unchanged.
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
			call["arguments"], _ = Encode(string(call["arguments"]))
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

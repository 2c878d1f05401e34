package message

import (
	"encoding/json"
	"slices"
)

// shared are the fields of every message in Letta's API; those that a message does not
// have are null there.
func shared() []string {
	return []string{"id", "date", "name", "message_type", "otid", "sender_id", "step_id", "is_err", "seq_id", "run_id"}
}

// own are the further fields of a type of message in Letta's API; nil for a type that
// toold does not record.
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

// History makes of a recorded message what Letta's API lists: its fields and no others,
// null where there is no value, and calls of name, arguments as text and tool_call_id.
// What cannot be read it returns as Listed does.
func History(record []byte) []byte {
	listed := Listed(record)
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

// familyCall is a call as Letta's API has it.
type familyCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	CallID    string `json:"tool_call_id"`
}

// familyCalls makes of a call, or of an array of calls, those of Letta's API.
func familyCalls(raw json.RawMessage) json.RawMessage {
	type recorded struct {
		familyCall
		ToolName string `json:"tool_name"`
	}
	var one recorded
	var many []recorded
	if json.Unmarshal(raw, &one) != nil && json.Unmarshal(raw, &many) != nil {
		return raw
	}
	var v any
	if many == nil {
		v = named(one.familyCall, one.ToolName)
	} else {
		calls := make([]familyCall, len(many))
		for i, c := range many {
			calls[i] = named(c.familyCall, c.ToolName)
		}
		v = calls
	}
	text, err := Encode(v)
	if err != nil {
		return raw
	}
	return text
}

func named(c familyCall, tool string) familyCall {
	if c.Name == "" {
		c.Name = tool
	}
	return c
}

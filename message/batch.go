package message

import (
	"encoding/json"

	"github.com/toold/toold/internal/strict"
)

type batch struct {
	calls []ToolCall
	index map[string]int
}

func (b *batch) add(c ToolCall) {
	if b.index == nil {
		b.index = map[string]int{}
	}
	i, known := b.index[c.ID]
	if !known {
		b.index[c.ID] = len(b.calls)
		b.calls = append(b.calls, c)
		return
	}
	if was := &b.calls[i]; was.Name != c.Name || !sameJSON(was.Arguments, c.Arguments) || was.Invalid != c.Invalid {
		was.refuse("the frame contains two different calls with this tool_call_id; give each call its own")
	}
}

// refuse marks a call as invalid. The first reason is kept.
func (c *ToolCall) refuse(text string) {
	if c.Invalid == "" {
		c.Invalid = text
	}
}

// toolCall converts a call of the Letta dialects. It returns an Error if the call has no usable id for a return.
func (c *wireCall) toolCall() (ToolCall, *Error) {
	if e := checkID(c.CallID, "tool_call_id", c.faults); e != nil {
		return ToolCall{}, e
	}
	call := newCall(c.CallID, c.ToolName, c.Arguments, c.faults)
	if c.ToolName == "" {
		call.Name = c.Name
	} else if c.Name != "" && c.Name != c.ToolName {
		call.refuse("tool_name and name disagree; send one of them")
	}
	if call.Name == "" {
		call.refuse("the call names no tool; send its name")
	}
	return call, nil
}

// checkID returns why a return cannot name a call, or nil.
func checkID(id, field string, faults []fault) *Error {
	for _, f := range faults {
		switch {
		case f.field == field && f.duplicate:
			return InvalidFrame.Errorf("%s is there twice in a call; send it once", field)
		case f.field == "":
			return MissingToolCallID.Errorf("a call %s; nothing was run", f.text)
		case f.field == field:
			return MissingToolCallID.Errorf("a call cannot be answered: %s %s; nothing was run", field, f.text)
		}
	}
	if id == "" {
		return MissingToolCallID.Errorf("a call has no %s, so that no return can be matched to it; nothing was run", field)
	}
	return nil
}

func newCall(id, name string, arguments json.RawMessage, faults []fault) ToolCall {
	call := ToolCall{ID: id, Name: name, Invalid: sentence(faults)}
	var problem string
	if call.Arguments, problem = argumentBytes(arguments); problem != "" {
		call.refuse(problem)
	}
	return call
}

// argumentBytes returns the exact bytes of a value or, for a string, its content. It does not parse them.
func argumentBytes(raw json.RawMessage) (text json.RawMessage, problem string) {
	switch {
	case len(raw) == 0:
		return json.RawMessage("null"), ""
	case strict.Ambiguous(raw, false) != "":
		return raw, "arguments contain half of a surrogate pair; send valid Unicode text"
	case raw[0] != '"':
		return raw, ""
	}
	s, err := unquote(raw)
	if err != nil {
		return raw, "arguments " + err.Error()
	}
	return json.RawMessage(s), ""
}

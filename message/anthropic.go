package message

import "encoding/json"

type wireToolUse struct {
	Type   string          `json:"type"`
	CallID string          `json:"id" wire:"id" jsonschema:"names the call in the answer"`
	Name   string          `json:"name" wire:"id"`
	Input  json.RawMessage `json:"input" jsonschema:"an object"`
	Origin
	faults []fault
}

func (w *wireToolUse) bindSelf(raw json.RawMessage) { w.faults = bind(raw, w) }

func (d *Decoder) toolUse(x *decoding) {
	var w wireToolUse
	w.bindSelf(x.frame)
	w.Origin.ID = "" // it is the id of the tool_use block, which names the call
	d.toolUses(x, w.Origin, []wireToolUse{w})
}

func (d *Decoder) toolUses(x *decoding, from Origin, blocks []wireToolUse) {
	var b batch
	for _, w := range blocks {
		call, e := w.toolCall()
		if e != nil {
			x.errs = append(x.errs, e)
			continue
		}
		d.forget(call.ID, from)
		b.add(call)
	}
	if len(b.calls) > 0 {
		x.emit(&Request{Dialect: Anthropic, Origin: from, Calls: b.calls})
	}
}

func (w wireToolUse) toolCall() (ToolCall, *Error) {
	if e := checkID(w.CallID, "id", w.faults); e != nil {
		return ToolCall{}, e
	}
	call := newCall(w.CallID, w.Name, w.Input, w.faults)
	if call.Name == "" {
		call.refuse("the block names no tool; send name")
	}
	if len(w.Input) > 0 && w.Input[0] != '{' {
		call.refuse("input must be an object")
	}
	return call, nil
}

func (x *decoding) toolUsesOf(content json.RawMessage) []wireToolUse {
	if len(content) == 0 || content[0] != '[' {
		return nil
	}
	elements, err := splitArray(content)
	if err != nil {
		x.errorf(InvalidFrame, "content %v", err)
		return nil
	}
	var blocks []wireToolUse
	for _, element := range elements {
		if element[0] != '{' {
			continue
		}
		var w wireToolUse
		if w.bindSelf(element); w.Type == "tool_use" || hasFault(w.faults, "type") {
			blocks = append(blocks, w)
		}
	}
	return blocks
}

type toolResult struct {
	Type    string `json:"type"`
	CallID  string `json:"tool_use_id"`
	Content string `json:"content"`
	IsError bool   `json:"is_error"`
}

func toolUseAnswer(_ *Request, returns []ToolReturn) any {
	return toolResult{"tool_result", returns[0].CallID, returns[0].Result, returns[0].Status != "success"}
}

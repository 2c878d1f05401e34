package message

import "cmp"

// chatRequest ignores messages without calls, which are plain text.
func (d *Decoder) chatRequest(x *decoding) {
	var w wireChat
	faults := x.bind(&w)
	if hasFault(faults, "tool_calls") {
		x.errorf(InvalidFrame, "tool_calls must be there once, as an array")
		return
	}
	if blocks := x.toolUsesOf(w.Content); len(blocks) > 0 {
		if len(w.ToolCalls) > 0 || len(faults) > 0 {
			x.errorf(InvalidFrame, "the message cannot be understood: %s", cmp.Or(sentence(faults), "it contains tool_use blocks and tool_calls; send one of them"))
			return
		}
		d.toolUses(x, w.Origin, blocks)
		return
	}
	if len(w.ToolCalls) == 0 && len(w.FunctionCall) > 0 {
		x.errorf(MissingToolCallID, "function_call carries no id, so that no return can be matched to it; send tool_calls")
	}
	var b batch
	for i := range w.ToolCalls {
		call, e := w.ToolCalls[i].toolCall()
		if e != nil {
			x.errs = append(x.errs, e)
			continue
		}
		if len(faults) > 0 {
			call.refuse(sentence(faults))
		}
		d.forget(call.ID, w.Origin)
		b.add(call)
	}
	if len(b.calls) > 0 {
		x.emit(&Request{Dialect: OpenAI, Origin: w.Origin, Calls: b.calls})
	}
}

func (c *wireChatCall) toolCall() (ToolCall, *Error) {
	if e := checkID(c.CallID, "id", c.faults); e != nil {
		return ToolCall{}, e
	}
	call := newCall(c.CallID, c.Function.Name, c.Function.Arguments, c.faults)
	if c.Type != "" && c.Type != "function" {
		call.refuse("toold runs calls of the type function only")
	}
	if call.Name == "" {
		call.refuse("the call names no function; send function.name")
	}
	return call, nil
}

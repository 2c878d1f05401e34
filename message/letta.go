package message

// lettaRequest accepts OpenLetta and Letta API in one frame, because the return is the same for both.
func (d *Decoder) lettaRequest(x *decoding) {
	var w wireRequest
	faults := x.bind(&w)
	if hasFault(faults, "tool_call", "tool_calls") || w.ToolCalls.fault != "" {
		x.errorf(InvalidFrame, "tool_calls must be there once, as an array or one object, and tool_call once, as an object")
		return
	}
	if fragment := d.fragmentOf(&w); fragment != nil {
		d.collect(x, &w, fragment, sentence(faults))
		return
	}
	calls := w.complete(x)
	for i := range calls {
		d.forget(calls[i].ID, w.Origin)
		if len(faults) > 0 {
			calls[i].refuse(sentence(faults))
		}
	}
	if len(calls) > 0 {
		x.emit(&Request{Dialect: w.dialect(), Origin: w.Origin, Calls: calls})
	}
}

func (w *wireRequest) complete(x *decoding) []ToolCall {
	var b batch
	for i := range w.ToolCalls.items {
		if call, e := w.ToolCalls.items[i].toolCall(); e != nil {
			x.errs = append(x.errs, e)
		} else {
			b.add(call)
		}
	}
	switch {
	case len(w.ToolCalls.items) > 0 && w.ToolCall != nil:
		b.addMirror(w.ToolCall)
	case w.ToolCall != nil:
		call, e := w.ToolCall.toolCall()
		if e != nil {
			x.errs = append(x.errs, e)
			break
		}
		b.add(call)
	case len(w.ToolCalls.items) == 0:
		x.errorf(MissingToolCallID, "the request contains no call; send tool_calls, or tool_call with a tool_call_id")
	}
	return b.calls
}

// addMirror compares tool_call with its copy in tool_calls. If they differ, the call is ambiguous and refused.
func (b *batch) addMirror(mirror *wireCall) {
	call, e := mirror.toolCall()
	if e != nil {
		return
	}
	i, known := b.index[call.ID]
	if !known {
		call.refuse("tool_call names a call that tool_calls does not contain; put every call into tool_calls")
		b.add(call)
		return
	}
	if call.Name == "" {
		call.Name, call.Invalid = b.calls[i].Name, b.calls[i].Invalid
	}
	if len(mirror.Arguments) == 0 {
		call.Arguments = b.calls[i].Arguments
	}
	if was := &b.calls[i]; was.Invalid == "" {
		b.add(call)
	}
}

func (w *wireRequest) dialect() Dialect {
	if w.ToolCall != nil && w.ToolCall.ToolName != "" {
		return OpenLetta
	}
	return LettaAPI
}

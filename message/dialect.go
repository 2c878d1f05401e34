package message

// form is one form in which calls come: its dialect, the kind of the frames that begin
// it, and what decodes them. answer makes the answer to a call that has ended; nil: the
// return itself is the answer.
type form struct {
	dialect Dialect
	kind    string // see discriminate
	decode  func(*Decoder, *decoding)
	answer  func(*Request, []ToolReturn) any
}

// forms are all forms. A new dialect is a file that decodes its frames and a line here.
// Anthropic's messages have the kind of OpenAI's chat, which sends them on.
func forms() []form {
	return []form{
		{OpenLetta, "approval_request_message", (*Decoder).lettaRequest, nil},
		{LettaAPI, "stop_reason", (*Decoder).lettaStop, nil},
		{OpenAI, roleKind + "assistant", (*Decoder).chatRequest, chatAnswer},
		{OpenAIShell, "shell_call", (*Decoder).shellCall, shellAnswer},
		{OpenAILocalShell, "local_shell_call", (*Decoder).localShellCall, localShellAnswer},
		{OpenAIPatch, "apply_patch_call", (*Decoder).patchCall, patchAnswer},
		{Anthropic, "tool_use", (*Decoder).toolUse, toolResult},
	}
}

// decoderOf returns what decodes frames of a kind; nil when they ask for no call.
func decoderOf(kind string) func(*Decoder, *decoding) {
	for _, f := range forms() {
		if f.kind == kind {
			return f.decode
		}
	}
	return nil
}

// Answer returns what answers a request in its dialect when these of its calls have ended;
// nil where that is each return itself.
func (r *Request) Answer(returns ...ToolReturn) any {
	for _, f := range forms() {
		if f.dialect == r.Dialect && f.answer != nil {
			return f.answer(r, returns)
		}
	}
	return nil
}

func chatAnswer(_ *Request, returns []ToolReturn) any { return returns[0].OpenAI() }

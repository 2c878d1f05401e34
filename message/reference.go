package message

// A Reference is what the answer to a frame repeats of it.
type Reference struct {
	RequestID string
	CallID    string
}

// ReferenceOf returns the request_id and the tool_call_id of a frame, each empty where the
// frame has none. The frame need not be valid: what precedes its first fault counts.
func ReferenceOf(frame []byte) (r Reference) {
	i := skipSpace(frame, 0)
	if i == len(frame) || frame[i] != '{' {
		return r
	}
	for i++; ; i++ { // past the brace or a comma
		start := skipSpace(frame, i)
		if start == len(frame) || frame[start] != '"' {
			return r
		}
		end := skipString(frame, start)
		key, _ := unquote(frame[start:end])
		colon := skipSpace(frame, end)
		if colon == len(frame) || frame[colon] != ':' {
			return r
		}
		start = skipSpace(frame, colon+1)
		end = skipValue(frame, start)
		switch key {
		case "request_id":
			r.RequestID = firstIdent(r.RequestID, frame[start:end])
		case "tool_call_id":
			r.CallID = firstIdent(r.CallID, frame[start:end])
		}
		if i = skipSpace(frame, end); i == len(frame) || frame[i] != ',' {
			return r
		}
	}
}

// firstIdent returns known or, where that is empty, the ident that raw holds.
func firstIdent(known string, raw []byte) string {
	if known != "" {
		return known
	}
	if s, err := unquote(raw); err == nil && printable(s) {
		return s
	}
	return ""
}

// Refer fills in what e does not say itself of the frame that it answers.
func (e *Error) Refer(r Reference) {
	if e.RequestID == "" {
		e.RequestID = r.RequestID
	}
	if e.CallID == "" {
		e.CallID = r.CallID
	}
}

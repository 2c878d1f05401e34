package message

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Decoder decodes the text frames of one connection, and keeps fragments of calls between frames. The zero value is
// ready to use. It is not safe for concurrent use.
type Decoder struct {
	MaxFragmentCalls int // limit for calls in fragments; 0: 128
	MaxFragmentBytes int // limit for their arguments; 0: 16 MiB

	runs  []*collection
	calls int // collected in runs
	bytes int // size of their arguments
}

// Held returns the size of the arguments in collected fragments, in bytes.
func (d *Decoder) Held() int { return d.bytes }

// Decode decodes one frame. The results refer to the memory of frame. A frame may yield both calls and errors; a
// message that needs no action yields nothing.
func (d *Decoder) Decode(frame []byte) ([]Inbound, []*Error) {
	x := &decoding{frame: frame}
	x.run(d)
	if len(x.errs) > 0 {
		for _, e := range x.errs {
			e.Refer(frame)
		}
	}
	return x.in, x.errs
}

type decoding struct {
	frame json.RawMessage
	top   object // members of frame
	alias bool   // the kind was in "type"
	in    []Inbound
	errs  []*Error
}

func (x *decoding) run(d *Decoder) {
	if err := checkFrame(x.frame); err != nil {
		x.errorf(InvalidFrame, "%v; send one JSON object per text frame", err)
		return
	}
	var err error
	if x.top, err = splitObject(x.frame); err != nil {
		x.errorf(InvalidFrame, "the frame %v; send one JSON object per text frame, and several calls in its tool_calls", err)
		return
	}
	if kind := x.discriminate(); kind != "" {
		d.decode(x, kind)
	}
}

func (x *decoding) errorf(t ErrorType, format string, args ...any) *Error {
	e := t.Errorf(format, args...)
	x.errs = append(x.errs, e)
	return e
}

func (x *decoding) emit(in Inbound) { x.in = append(x.in, in) }

// roleKind marks a role as kind. No message_type contains a space.
const roleKind = "role "

// discriminate returns the message_type, type or role of the frame, whichever comes first in this order; "" after an
// error.
func (x *decoding) discriminate() string {
	for _, key := range []string{"message_type", "type", "role"} {
		raw, ok := x.top.get(key)
		if !ok {
			continue
		}
		kind, err := unquote(raw)
		if err != nil || kind == "" || !IsID(kind) {
			x.errorf(InvalidFrame, "%s must be a short, not empty string", key)
			return ""
		}
		if slices.Contains(x.top.duplicates(), key) {
			x.errorf(InvalidFrame, "%s is there twice; send it once", key)
			return ""
		}
		if key == "type" && kind == "message" {
			continue // a chat message in Letta's create form, which has a role
		}
		x.alias = key == "type"
		if key == "role" {
			return roleKind + kind
		}
		return kind
	}
	x.errorf(InvalidFrame, "the frame has no message_type, type or role; send message_type, for example approval_request_message")
	return ""
}

func (d *Decoder) decode(x *decoding, kind string) {
	if decode := decoderOf(kind); decode != nil {
		decode(d, x)
		return
	}
	switch kind {
	case "approval":
		x.approvalResponse()
	case "tool_return":
		x.errorf(InvalidArguments, "toold takes no results of tools: it runs them itself; send calls")
	default:
		if passive(kind) {
			return
		}
		what := "type"
		if role, ok := strings.CutPrefix(kind, roleKind); ok {
			what, kind = "role", role
		}
		x.errorf(UnknownMessageType, "toold knows no message of the %s %q; see docs/protocol.md for those it takes", what, kind)
	}
}

// passive reports whether a message needs no action. Clients may forward whole streams.
func passive(kind string) bool {
	if role, ok := strings.CutPrefix(kind, roleKind); ok {
		return slices.Contains(passiveRoles(), role)
	}
	return slices.Contains(passiveTypes(), kind)
}

// passiveTypes includes tool_call_message, because another program runs that call.
func passiveTypes() []string {
	return []string{
		"system_message", "user_message", "assistant_message", "reasoning_message", "hidden_reasoning_message",
		"tool_call_message", "tool_return_message", "summary_message", "event_message", "error_message",
		"usage_statistics",
		"reasoning", "shell_call_output", "local_shell_call_output", "apply_patch_call_output", "tool_result",
	}
}

func passiveRoles() []string { return []string{"user", "system", "developer", "tool", "function"} }

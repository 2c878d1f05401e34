package message

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/internal/spell"
)

type frameType struct {
	key, value string
	typ        reflect.Type

	// For client frames only:
	decode  func(*Decoder, *decoding)
	dialect Dialect                          // of its calls, or ""
	answer  func(*Request, []ToolReturn) any // nil: each return is its own answer
}

// clientFrames lists the frames that Decode accepts. A new dialect is a file with its decoder and a line here.
var clientFrames = sync.OnceValue(func() []frameType {
	return []frameType{
		{"message_type", "approval_request_message", reflect.TypeFor[wireRequest](), (*Decoder).lettaRequest, OpenLetta, nil},
		{"message_type", "stop_reason", reflect.TypeFor[wireStop](), (*Decoder).lettaStop, LettaAPI, nil},
		{"role", "assistant", reflect.TypeFor[wireChat](), (*Decoder).chatRequest, OpenAI, chatAnswer},
		{"type", "shell_call", reflect.TypeFor[wireShellCall](), (*Decoder).shellCall, OpenAIShell, shellAnswer},
		{"type", "local_shell_call", reflect.TypeFor[wireLocalShellCall](), (*Decoder).localShellCall, OpenAILocalShell, localShellAnswer},
		{"type", "apply_patch_call", reflect.TypeFor[wirePatchCall](), (*Decoder).patchCall, OpenAIPatch, patchAnswer},
		{"type", "tool_use", reflect.TypeFor[wireToolUse](), (*Decoder).toolUse, Anthropic, toolUseAnswer},
		special[wireApproval]("approval_response_message", (*decoding).approvalResponse),
		plainFrame("cancel", Cancel{}, false),
		special[wireInput]("tool_input", (*decoding).toolInput),
		// An ignored filter would select everything, so list_messages is exact.
		plainFrame("list_messages", ListMessages{Limit: 100}, true),
		plainFrame("list_approvals", ListApprovals{}, false),
		plainFrame("list_calls", ListCalls{}, false),
		plainFrame("subscribe", Subscribe{}, true),
		plainFrame("unsubscribe", Unsubscribe{}, false),
		plainFrame("get_output", GetOutput{}, false),
		special[wireExplainPolicy]("explain_policy", (*decoding).explainPolicy),
		plainFrame("hello", Hello{}, false),
		special[Ping]("ping", (*decoding).ping),
	}
})

func special[T any](value string, decode func(*decoding)) frameType {
	return frameType{key: "message_type", value: value, typ: reflect.TypeFor[T](), decode: func(_ *Decoder, x *decoding) { decode(x) }}
}

// plainFrame binds a copy of preset, and calls its check method if it has one, which sets defaults and returns a
// fault. Exact frames reject unknown members.
func plainFrame[T any](value string, preset T, exact bool) frameType {
	return special[T](value, func(x *decoding) {
		w := preset
		faults := x.bind(&w)
		if exact {
			faults = append(faults, x.unknown(value, reflect.TypeFor[T]())...)
		}
		if x.refuse(faults) {
			return
		}
		if checked, ok := any(&w).(interface{ check() string }); ok {
			if text := checked.check(); text != "" {
				x.errorf(InvalidArguments, "%s", text)
				return
			}
		}
		x.emit(&w)
	})
}

func decoderOf(kind string) func(*Decoder, *decoding) {
	value, isRole := strings.CutPrefix(kind, roleKind)
	for _, f := range clientFrames() {
		if f.value == value && (f.key == "role") == isRole {
			return f.decode
		}
	}
	return nil
}

// Answer returns the answer to a request in its dialect, after its calls have ended with these returns. It returns nil
// if each return is its own answer.
func (r *Request) Answer(returns ...ToolReturn) any {
	for _, f := range clientFrames() {
		if f.dialect == r.Dialect && f.answer != nil {
			return f.answer(r, returns)
		}
	}
	return nil
}

// refuse answers a frame that has faults with one error that names them all. It reports whether there are any.
func (x *decoding) refuse(faults []fault) bool {
	if len(faults) == 0 {
		return false
	}
	t := InvalidArguments
	for _, f := range faults {
		if f.duplicate {
			t = InvalidFrame
		}
	}
	x.errorf(t, "%s", sentence(faults))
	return true
}

// unknown returns faults for the members that a kind of frame does not have. A type member may repeat the kind.
func (x *decoding) unknown(kind string, wire reflect.Type) (faults []fault) {
	var names []string
	for field := range wire.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	for _, m := range x.top {
		if slices.Contains(names, m.Name) {
			continue
		}
		if text, err := unquote(m.Value); m.Name == "type" && err == nil && text == kind {
			continue
		}
		near := spell.Nearest(m.Name[:min(len(m.Name), 64)], names)
		if near != "" {
			near = fmt.Sprintf("did you mean %s? ", near)
		}
		faults = append(faults, fault{field: m.Name, text: "is no field of this frame; " + near + "its fields are " + strings.Join(names, ", ")})
	}
	return faults
}

func (x *decoding) ping() {
	var w Ping
	if faults := x.bind(&w); x.refuse(faults) {
		return
	}
	// Pings in Letta streams have no nonce and expect no answer.
	if x.alias || w.Nonce != "" {
		w.TypeAlias = x.alias
		x.emit(&w)
	}
}

// wireInput is tool_input. Exactly one of data, data_b64, eof, signal and resize must be set.
type wireInput struct {
	MessageType string        `json:"message_type"`
	RequestID   string        `json:"request_id,omitempty" wire:"id" jsonschema:"wants input_taken when the command has the data"`
	CallID      string        `json:"tool_call_id" wire:"id"`
	AgentID     *string       `json:"agent_id,omitempty" wire:"id" jsonschema:"whose call: several agents may use the same id"`
	Data        *string       `json:"data,omitempty" jsonschema:"text for the terminal"`
	DataB64     *string       `json:"data_b64,omitempty" jsonschema:"bytes for the terminal, in base64"`
	EOF         bool          `json:"eof,omitempty" jsonschema:"ends the input"`
	Signal      string        `json:"signal,omitempty" wire:"id" jsonschema:"for example INT"`
	To          string        `json:"to,omitempty" jsonschema:"of signal: group (default) or leader"`
	Resize      *terminalSize `json:"resize,omitempty"`
}

type terminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// MarshalJSON returns the tool_input frame.
func (in ToolInput) MarshalJSON() ([]byte, error) {
	w := wireInput{MessageType: "tool_input", RequestID: in.RequestID, CallID: in.CallID, AgentID: in.AgentID, EOF: in.EOF, Signal: in.Signal}
	if len(in.Data) > 0 {
		text := base64.StdEncoding.EncodeToString(in.Data)
		w.DataB64 = &text
	}
	if in.Leader {
		w.To = "leader"
	}
	if in.Rows != 0 || in.Cols != 0 {
		w.Resize = &terminalSize{in.Rows, in.Cols}
	}
	return json.Marshal(w)
}

func (x *decoding) toolInput() {
	var w wireInput
	if faults := x.bind(&w); x.refuse(faults) {
		return
	}
	in := &ToolInput{RequestID: w.RequestID, CallID: w.CallID, AgentID: w.AgentID, EOF: w.EOF, Signal: w.Signal, Leader: w.To == "leader"}
	if text := w.fill(in); text != "" {
		x.errorf(InvalidArguments, "%s", text)
		return
	}
	x.emit(in)
}

// fill sets the fields of in, and returns what is wrong with w, or "".
func (w *wireInput) fill(in *ToolInput) string {
	set := 0
	for _, is := range []bool{w.Data != nil, w.DataB64 != nil, w.EOF, w.Signal != "", w.Resize != nil} {
		if is {
			set++
		}
	}
	isTo := w.To == "group" || w.To == "leader"
	switch {
	case w.CallID == "":
		return "tool_input needs the tool_call_id of a running call"
	case set != 1:
		return "tool_input needs exactly one of data, data_b64, eof, signal and resize"
	case w.Signal != "" && !isSignal(w.Signal):
		return "signal must be the name of one, such as INT or SIGTERM"
	case w.To != "" && (w.Signal == "" || !isTo):
		return "to belongs to signal and must be group or leader"
	case w.Resize != nil && (w.Resize.Rows == 0 || w.Resize.Cols == 0):
		return "resize needs rows and cols from 1 to 65535"
	case w.Resize != nil:
		in.Rows, in.Cols = w.Resize.Rows, w.Resize.Cols
		return ""
	}
	return w.fillData(in)
}

func (w *wireInput) fillData(in *ToolInput) string {
	switch {
	case w.Data != nil:
		in.Data = []byte(*w.Data)
	case w.DataB64 != nil:
		var err error
		if in.Data, err = base64.StdEncoding.DecodeString(*w.DataB64); err != nil {
			return "data_b64 must be base64 with padding (RFC 4648 section 4)"
		}
	default:
		return ""
	}
	if len(in.Data) == 0 {
		return "the data is empty; send eof: true to end the input"
	}
	return ""
}

// isSignal reports whether s is a signal name (signal(7)) in upper or lower case, with or without SIG.
func isSignal(s string) bool {
	return slices.Contains([]string{
		"HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
		"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
	}, strings.TrimPrefix(strings.ToUpper(s), "SIG"))
}

type wireExplainPolicy struct {
	MessageType string    `json:"message_type"`
	RequestID   string    `json:"request_id,omitempty" wire:"id"`
	Call        *wireCall `json:"call"`
}

// explainPolicy decodes explain_policy. Its call does not run, so the id is optional.
func (x *decoding) explainPolicy() {
	var w wireExplainPolicy
	if faults := x.bind(&w); x.refuse(faults) {
		return
	}
	if w.Call == nil {
		x.errorf(InvalidArguments, "explain_policy needs a call with a name and arguments")
		return
	}
	if w.Call.CallID == "" {
		w.Call.CallID = "explained"
	}
	call, e := w.Call.toolCall()
	if e == nil && call.Invalid != "" {
		e = InvalidArguments.Errorf("%s", call.Invalid)
	}
	if e != nil {
		x.errs = append(x.errs, e)
		return
	}
	x.emit(&ExplainPolicy{RequestID: w.RequestID, Call: call})
}

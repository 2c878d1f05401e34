package message

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/toold/toold/internal/spell"
)

// control decodes the frames that toold adds to the family.
func (x *decoding) control(kind string) {
	switch kind {
	case "hello":
		x.hello()
	case "cancel":
		x.cancel()
	case "tool_input":
		x.toolInput()
	case "list_messages":
		x.listMessages()
	case "list_approvals":
		x.listApprovals()
	case "list_calls":
		x.listCalls()
	case "subscribe":
		x.subscribe()
	case "unsubscribe":
		x.unsubscribe()
	case "get_output":
		x.getOutput()
	case "explain_policy":
		x.explainPolicy()
	}
}

// refuse answers a frame with faults by one error that names them all.
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

func (x *decoding) ping() {
	var w wirePing
	if faults := bind(x.frame, &w); x.refuse(faults) {
		return
	}
	// Letta's own message streams hold pings that expect no answer; they have
	// no nonce.
	if x.alias || w.Nonce != "" {
		x.emit(&Ping{Nonce: string(w.Nonce), TypeAlias: x.alias})
	}
}

func (x *decoding) hello() {
	var w wireHello
	if faults := bind(x.frame, &w); x.refuse(faults) {
		return
	}
	switch w.Output {
	case "":
		w.Output = "delta"
	case "none", "delta", "binary":
	default:
		x.errorf(InvalidArguments, "output must be none, delta or binary")
		return
	}
	if w.Protocol == 0 {
		w.Protocol = 1
	}
	if w.Protocol != 1 {
		x.errorf(InvalidArguments, "toold speaks protocol 1, not %d", w.Protocol)
		return
	}
	h := &Hello{Protocol: w.Protocol, ClientName: string(w.Client.Name), Version: string(w.Client.Version), Output: w.Output, Workspace: w.Workspace}
	if r := w.Resume; r != nil {
		h.Resume = &Resume{ConnID: string(r.ConnID), LastEventSeq: r.LastEventSeq}
	}
	x.emit(h)
}

func (x *decoding) cancel() {
	var w wireCancel
	if faults := bind(x.frame, &w); x.refuse(faults) {
		return
	}
	if (w.CallID != "") == w.All {
		x.errorf(InvalidArguments, "cancel needs either tool_call_id or all: true")
		return
	}
	x.emit(&Cancel{CallID: string(w.CallID), All: w.All, Reason: w.Reason})
}

func (x *decoding) toolInput() {
	var w wireInput
	if faults := bind(x.frame, &w); x.refuse(faults) {
		return
	}
	in := &ToolInput{
		RequestID: string(w.RequestID), CallID: string(w.CallID),
		EOF: w.EOF, Signal: string(w.Signal), Leader: w.To == "leader", Resize: w.Resize,
	}
	if text := w.fill(in); text != "" {
		x.errorf(InvalidArguments, "%s", text)
		return
	}
	x.emit(in)
}

// fill decodes the data of an input and returns what is wrong with it.
func (w *wireInput) fill(in *ToolInput) string {
	set := 0
	for _, is := range []bool{w.Data != nil, w.DataB64 != nil, w.EOF, w.Signal != "", w.Resize != nil} {
		if is {
			set++
		}
	}
	switch {
	case w.CallID == "":
		return "tool_input needs the tool_call_id of a running call"
	case set != 1:
		return "tool_input needs exactly one of data, data_b64, eof, signal and resize"
	case w.Signal != "" && !isSignal(string(w.Signal)):
		return "signal must be the name of one, such as INT or SIGTERM"
	case w.To != "" && (w.Signal == "" || w.To != "group" && w.To != "leader"):
		return "to belongs to signal and must be group or leader"
	case w.Resize != nil && (w.Resize.Rows == 0 || w.Resize.Cols == 0):
		return "resize needs rows and cols from 1 to 65535"
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
	if w.Resize == nil && len(in.Data) == 0 {
		return "the data is empty; send eof: true to end the input"
	}
	return ""
}

func (x *decoding) listMessages() {
	var w wireListMessages
	if faults := append(bind(x.frame, &w), unknown(x.frame, w)...); x.refuse(faults) {
		return
	}
	limit := 100
	if w.Limit != nil {
		limit = *w.Limit
	}
	text := ""
	switch {
	case limit < 1 || limit > 1000:
		text = "limit must be from 1 to 1000"
	case w.Order != "" && w.Order != "asc" && w.Order != "desc":
		text = "order must be asc or desc"
	case w.Status != "" && w.Status != "success" && w.Status != "error":
		text = "status must be success or error"
	case w.Workspace != "" && !filepath.IsAbs(w.Workspace):
		text = "workspace must be the absolute path of one, as hello_ack lists it"
	}
	if text != "" {
		x.errorf(InvalidArguments, "%s", text)
		return
	}
	x.emit(&ListMessages{
		RequestID: string(w.RequestID), Before: string(w.Before), After: string(w.After), Limit: limit,
		Ascending: w.Order == "asc", RunID: string(w.RunID), StepID: string(w.StepID), AgentID: string(w.AgentID),
		ConversationID: string(w.ConversationID), CallID: string(w.CallID), OTID: string(w.OTID),
		GroupID: string(w.GroupID), SenderID: string(w.SenderID), Workspace: w.Workspace,
		MessageTypes: texts(w.MessageTypes), Status: w.Status,
	})
}

// unknown finds the members of a frame that its wire type does not have. Most frames may
// have them; a filter that is ignored would select everything.
func unknown(frame json.RawMessage, wire any) (faults []fault) {
	o, err := splitObject(frame)
	if err != nil {
		return nil // bind says so
	}
	var names []string
	for i := range reflect.TypeOf(wire).NumField() {
		name, _, _ := strings.Cut(reflect.TypeOf(wire).Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	for _, m := range o {
		if m.key == "type" || slices.Contains(names, m.key) {
			continue // type may stand for message_type
		}
		near := spell.Nearest(m.key[:min(len(m.key), 64)], names)
		if near != "" {
			near = fmt.Sprintf("did you mean %s? ", near)
		}
		faults = append(faults, fault{field: m.key, text: "is no field of this frame; " + near + "its fields are " + strings.Join(names, ", ")})
	}
	return faults
}

func texts(ids []ident) []string {
	var list []string
	for _, id := range ids {
		list = append(list, string(id))
	}
	return list
}

func (x *decoding) listApprovals() {
	var w wireListApprovals
	if faults := bind(x.frame, &w); !x.refuse(faults) {
		x.emit(&ListApprovals{RequestID: string(w.RequestID)})
	}
}

func (x *decoding) listCalls() {
	var w wireListCalls
	if faults := bind(x.frame, &w); !x.refuse(faults) {
		x.emit(&ListCalls{RequestID: string(w.RequestID), All: w.All})
	}
}

func (x *decoding) getOutput() {
	var w wireGetOutput
	if faults := bind(x.frame, &w); x.refuse(faults) {
		return
	}
	if w.Stream == "" {
		w.Stream = "combined"
	}
	text := ""
	switch {
	case w.CallID == "":
		text = "get_output needs a tool_call_id"
	case w.Stream != "stdout" && w.Stream != "stderr" && w.Stream != "combined":
		text = "stream must be stdout, stderr or combined"
	case w.Offset < 0 || w.Limit < 0:
		text = "offset and limit count bytes and cannot be negative"
	}
	if text != "" {
		x.errorf(InvalidArguments, "%s", text)
		return
	}
	x.emit(&GetOutput{RequestID: string(w.RequestID), CallID: string(w.CallID), Stream: w.Stream, Offset: w.Offset, Limit: w.Limit})
}

// explainPolicy decodes a call that will not run and hence may lack an id.
func (x *decoding) explainPolicy() {
	var w wireExplainPolicy
	if faults := bind(x.frame, &w); x.refuse(faults) {
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
		e = Errorf(InvalidArguments, "%s", call.Invalid)
	}
	if e != nil {
		x.errs = append(x.errs, e)
		return
	}
	x.emit(&ExplainPolicy{RequestID: string(w.RequestID), Call: call})
}

package message

import "encoding/json"

// The structs of this file are the inbound frames as they are on the wire.
// Decoder binds frames to them and Schema describes them, so that neither can
// tell something else than the other. A field without omitempty is required in
// the schema; what Decoder accepts beyond that is said in docs/protocol.md.

// origin tells where in an agent's work a call belongs.
type origin struct {
	ID             ident `json:"id,omitempty" jsonschema:"id of the message"`
	OTID           ident `json:"otid,omitempty" jsonschema:"correlates retries; never suppresses a call"`
	AgentID        ident `json:"agent_id,omitempty"`
	ConversationID ident `json:"conversation_id,omitempty"`
	RunID          ident `json:"run_id,omitempty"`
	StepID         ident `json:"step_id,omitempty"`
	GroupID        ident `json:"group_id,omitempty" jsonschema:"of agents that work together"`
	SenderID       ident `json:"sender_id,omitempty" jsonschema:"who has the agent do it"`
}

func (o origin) request(d Dialect, frame json.RawMessage) *Request {
	return &Request{
		Dialect: d, ID: string(o.ID), OTID: string(o.OTID), AgentID: string(o.AgentID),
		ConversationID: string(o.ConversationID), RunID: string(o.RunID), StepID: string(o.StepID),
		GroupID: string(o.GroupID), SenderID: string(o.SenderID), Frame: frame,
	}
}

// wireRequest is approval_request_message, in the OpenLetta and the Letta API
// dialects.
type wireRequest struct {
	MessageType string    `json:"message_type"`
	ToolCall    *wireCall `json:"tool_call,omitempty" jsonschema:"the call, or the first of tool_calls once more"`
	ToolCalls   wireCalls `json:"tool_calls,omitzero" jsonschema:"all calls, or one fragment while they are streamed"`
	SeqID       *int64    `json:"seq_id,omitempty" jsonschema:"counts the fragments of a run; repeated ones are dropped"`
	origin
}

// wireCall is one call. Its faults are its own: they refuse this call and not
// the others of its frame.
type wireCall struct {
	CallID    ident           `json:"tool_call_id" jsonschema:"names the call in every answer"`
	ToolName  ident           `json:"tool_name,omitempty" jsonschema:"the tool (OpenLetta)"`
	Name      ident           `json:"name,omitempty" jsonschema:"the tool (Letta API)"`
	Arguments json.RawMessage `json:"arguments" jsonschema:"an object, or a string that holds the JSON text of one"`
	faults    []fault
}

func (c *wireCall) bindSelf(raw json.RawMessage) { c.faults = bind(raw, c) }

// wireCalls is the tool_calls of an approval request: an array, or one object
// while the model is still writing.
type wireCalls struct {
	items    []wireCall
	fragment *wireCall
	fault    string
}

func (c *wireCalls) bindSelf(raw json.RawMessage) {
	if raw[0] == '{' {
		c.fragment = &wireCall{}
		c.fragment.bindSelf(raw)
		return
	}
	elements, err := splitArray(raw)
	if err != nil {
		c.fault = err.Error()
	}
	c.items = make([]wireCall, len(elements))
	for i, element := range elements {
		c.items[i].bindSelf(element)
	}
}

// wireChat is an assistant's message in the chat form.
type wireChat struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content,omitempty" jsonschema:"text; in Anthropic's form an array whose tool_use blocks are the calls"`
	ToolCalls    []wireChatCall  `json:"tool_calls,omitempty"`
	FunctionCall json.RawMessage `json:"function_call,omitempty" jsonschema:"refused: it carries no id"`
	origin
}

type wireChatCall struct {
	CallID   ident        `json:"id" jsonschema:"names the call in every answer"`
	Type     string       `json:"type,omitempty" jsonschema:"function, or absent"`
	Function wireFunction `json:"function"`
	faults   []fault
}

func (c *wireChatCall) bindSelf(raw json.RawMessage) { c.faults = bind(raw, c) }

type wireFunction struct {
	Name      ident           `json:"name"`
	Arguments json.RawMessage `json:"arguments" jsonschema:"a string that holds the JSON text of an object, or the object"`
}

// wireStop is stop_reason: it ends a streamed step.
type wireStop struct {
	MessageType string `json:"message_type"`
	StopReason  string `json:"stop_reason"`
	RunID       ident  `json:"run_id,omitempty"`
}

// wireApproval is approval_response_message, and the create form whose type is
// "approval".
type wireApproval struct {
	MessageType       string       `json:"message_type"`
	Approvals         []wireAnswer `json:"approvals,omitempty"`
	Approve           *bool        `json:"approve,omitempty" jsonschema:"deprecated"`
	ApprovalRequestID ident        `json:"approval_request_id,omitempty" jsonschema:"deprecated; id of the approval request or of its call"`
	Reason            string       `json:"reason,omitempty"`
	Remember          string       `json:"remember,omitempty" jsonschema:"once (default), conversation, command, prefix or rule"`
	Pattern           string       `json:"pattern,omitempty" jsonschema:"with remember: rule, the commands that the rule allows"`

	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"with approval_request_id: arguments to run the call with instead of its own"`

	Widen      *wireWidening `json:"widen,omitempty" jsonschema:"with approval_request_id: what the call gets besides"`
	Beforehand bool          `json:"beforehand,omitempty" jsonschema:"the answer was given before the question, which nobody has read"`
}

type wireAnswer struct {
	Type    string `json:"type,omitempty" jsonschema:"approval"`
	CallID  ident  `json:"tool_call_id"`
	Approve *bool  `json:"approve"`
	Reason  string `json:"reason,omitempty"`

	Widen     *wireWidening   `json:"widen,omitempty" jsonschema:"what the call gets besides"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"arguments to run the call with instead of its own"`
	faults    []fault
}

func (a *wireAnswer) bindSelf(raw json.RawMessage) { a.faults = bind(raw, a) }

type wireCancel struct {
	MessageType string `json:"message_type"`
	CallID      ident  `json:"tool_call_id,omitempty" jsonschema:"this or all"`
	All         bool   `json:"all,omitempty" jsonschema:"every call of this connection"`
	Reason      string `json:"reason,omitempty"`
}

// wireInput is tool_input: exactly one of the optional fields.
type wireInput struct {
	MessageType string  `json:"message_type"`
	RequestID   ident   `json:"request_id,omitempty" jsonschema:"wants input_taken when the command has the data"`
	CallID      ident   `json:"tool_call_id"`
	Data        *string `json:"data,omitempty" jsonschema:"text for the terminal"`
	DataB64     *string `json:"data_b64,omitempty" jsonschema:"bytes for the terminal, in base64"`
	EOF         bool    `json:"eof,omitempty" jsonschema:"ends the input"`
	Signal      ident   `json:"signal,omitempty" jsonschema:"for example INT"`
	To          string  `json:"to,omitempty" jsonschema:"of signal: group (default) or leader"`
	Resize      *Resize `json:"resize,omitempty"`
}

type wireListMessages struct {
	MessageType    string  `json:"message_type"`
	RequestID      ident   `json:"request_id,omitempty" jsonschema:"repeated in the answer"`
	Before         ident   `json:"before,omitempty" jsonschema:"id of a message: older ones"`
	After          ident   `json:"after,omitempty" jsonschema:"id of a message: newer ones"`
	Limit          *int    `json:"limit,omitempty" jsonschema:"1 to 1000 (100)"`
	Order          string  `json:"order,omitempty" jsonschema:"desc (default) or asc"`
	RunID          ident   `json:"run_id,omitempty"`
	StepID         ident   `json:"step_id,omitempty"`
	AgentID        ident   `json:"agent_id,omitempty"`
	ConversationID ident   `json:"conversation_id,omitempty"`
	CallID         ident   `json:"tool_call_id,omitempty"`
	OTID           ident   `json:"otid,omitempty"`
	GroupID        ident   `json:"group_id,omitempty"`
	SenderID       ident   `json:"sender_id,omitempty"`
	Workspace      string  `json:"workspace,omitempty" jsonschema:"absolute path of the workspace of the calls, as hello_ack lists it"`
	MessageTypes   []ident `json:"message_types,omitempty"`
	Status         string  `json:"status,omitempty" jsonschema:"success or error"`
}

type wireListApprovals struct {
	MessageType string `json:"message_type"`
	RequestID   ident  `json:"request_id,omitempty"`
}

type wireListCalls struct {
	MessageType string `json:"message_type"`
	RequestID   ident  `json:"request_id,omitempty"`
	All         bool   `json:"all,omitempty" jsonschema:"also the latest that are answered"`
}

type wireGetOutput struct {
	MessageType string `json:"message_type"`
	RequestID   ident  `json:"request_id,omitempty"`
	CallID      ident  `json:"tool_call_id"`
	Stream      string `json:"stream,omitempty" jsonschema:"stdout, stderr or combined (default)"`
	Offset      int64  `json:"offset,omitempty" jsonschema:"bytes of the stream"`
	Limit       int64  `json:"limit,omitempty" jsonschema:"bytes; 0 is the daemon's default"`
}

type wireExplainPolicy struct {
	MessageType string    `json:"message_type"`
	RequestID   ident     `json:"request_id,omitempty"`
	Call        *wireCall `json:"call"`
}

type wireHello struct {
	MessageType string      `json:"message_type"`
	Protocol    int         `json:"protocol,omitempty" jsonschema:"1"`
	Client      wireClient  `json:"client,omitzero"`
	Output      string      `json:"output,omitempty" jsonschema:"none, delta (default) or binary"`
	Workspace   string      `json:"workspace,omitempty" jsonschema:"absolute path in a registered workspace; the daemon's own when absent"`
	Resume      *wireResume `json:"resume,omitempty" jsonschema:"to go on where an earlier connection ended"`
}

type wireResume struct {
	ConnID       ident `json:"conn_id,omitempty" jsonschema:"of its hello_ack; the latest connection when absent"`
	LastEventSeq int64 `json:"last_event_seq,omitempty" jsonschema:"of the last delta that came"`
}

type wireClient struct {
	Name    ident `json:"name,omitempty"`
	Version ident `json:"version,omitempty"`
}

type wirePing struct {
	MessageType string `json:"message_type"`
	Nonce       ident  `json:"nonce,omitempty"`
}

package message

import "encoding/json"

// These structs are inbound frames that Decode converts. A field without omitempty is required in
// the schema; docs/protocol.md lists what else is accepted.

// Origin is a call's place in an agent's work.
type Origin struct {
	ID             string `json:"id,omitempty" wire:"id" jsonschema:"id of the message"`
	OTID           string `json:"otid,omitempty" wire:"id" jsonschema:"correlates retries; never suppresses a call"`
	AgentID        string `json:"agent_id,omitempty" wire:"id"`
	ConversationID string `json:"conversation_id,omitempty" wire:"id"`
	RunID          string `json:"run_id,omitempty" wire:"id"`
	StepID         string `json:"step_id,omitempty" wire:"id"`
	GroupID        string `json:"group_id,omitempty" wire:"id" jsonschema:"of agents that work together"`
	SenderID       string `json:"sender_id,omitempty" wire:"id" jsonschema:"who has the agent do it"`
}

type wireRequest struct {
	MessageType string    `json:"message_type"`
	ToolCall    *wireCall `json:"tool_call,omitempty" jsonschema:"the call, or the first of tool_calls once more"`
	ToolCalls   wireCalls `json:"tool_calls,omitzero" jsonschema:"all calls, or one fragment while they are streamed"`
	SeqID       *int64    `json:"seq_id,omitempty" jsonschema:"counts the fragments of a run; repeated ones are dropped"`
	Origin
}

// wireCall is one call. Its faults refuse only this call.
type wireCall struct {
	CallID    string          `json:"tool_call_id" wire:"id" jsonschema:"names the call in every answer"`
	ToolName  string          `json:"tool_name,omitempty" wire:"id" jsonschema:"the tool (OpenLetta)"`
	Name      string          `json:"name,omitempty" wire:"id" jsonschema:"the tool (Letta API)"`
	Arguments json.RawMessage `json:"arguments" jsonschema:"an object, or a string that holds the JSON text of one"`
	faults    []fault
}

func (c *wireCall) bindSelf(raw json.RawMessage) { c.faults = bind(raw, c) }

// wireCalls is tool_calls: an array, or one streamed object.
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

type wireChat struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content,omitempty" jsonschema:"text; in Anthropic's form an array whose tool_use blocks are the calls"`
	ToolCalls    []wireChatCall  `json:"tool_calls,omitempty"`
	FunctionCall json.RawMessage `json:"function_call,omitempty" jsonschema:"refused: it carries no id"`
	Origin
}

type wireChatCall struct {
	CallID   string       `json:"id" wire:"id" jsonschema:"names the call in every answer"`
	Type     string       `json:"type,omitempty" jsonschema:"function, or absent"`
	Function wireFunction `json:"function"`
	faults   []fault
}

func (c *wireChatCall) bindSelf(raw json.RawMessage) { c.faults = bind(raw, c) }

type wireFunction struct {
	Name      string          `json:"name" wire:"id"`
	Arguments json.RawMessage `json:"arguments" jsonschema:"a string that holds the JSON text of an object, or the object"`
}

type wireStop struct {
	MessageType string `json:"message_type"`
	StopReason  string `json:"stop_reason"`
	RunID       string `json:"run_id,omitempty" wire:"id"`

	AgentID        string `json:"agent_id,omitempty" wire:"id"`
	ConversationID string `json:"conversation_id,omitempty" wire:"id"`
}

// wireApproval is approval_response_message, also as create form type "approval".
type wireApproval struct {
	MessageType       string       `json:"message_type"`
	RequestID         string       `json:"request_id,omitempty" wire:"id" jsonschema:"repeated in approval_resolved to this connection if the answer counts, else in the error"`
	Approvals         []wireAnswer `json:"approvals,omitempty"`
	Approve           *bool        `json:"approve,omitempty" jsonschema:"deprecated"`
	ApprovalRequestID string       `json:"approval_request_id,omitempty" wire:"id" jsonschema:"deprecated; id of the approval request or of its call"`
	Reason            string       `json:"reason,omitempty"`
	Remember          string       `json:"remember,omitempty" jsonschema:"once (default), conversation, command, prefix or rule"`
	Pattern           string       `json:"pattern,omitempty" jsonschema:"with remember: rule, the commands that the rule allows"`

	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"with approval_request_id: arguments to run the call with instead of its own"`

	Widen      *wireWidening `json:"widen,omitempty" jsonschema:"with approval_request_id: what the call gets besides"`
	Beforehand bool          `json:"beforehand,omitempty" jsonschema:"the answer was given before the question, which no one has read"`
}

type wireAnswer struct {
	Type    string `json:"type,omitempty" jsonschema:"approval"`
	CallID  string `json:"tool_call_id" wire:"id"`
	Approve *bool  `json:"approve"`
	Reason  string `json:"reason,omitempty"`

	Widen     *wireWidening   `json:"widen,omitempty" jsonschema:"what the call gets besides"`
	Arguments json.RawMessage `json:"arguments,omitempty" jsonschema:"arguments to run the call with instead of its own"`
	faults    []fault
}

func (a *wireAnswer) bindSelf(raw json.RawMessage) { a.faults = bind(raw, a) }

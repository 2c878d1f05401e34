// Package message contains toold's messages: it decodes every dialect's frames to Inbound values,
// encodes what toold sends, and generates the JSON Schema of both.
//
// It knows no tools, policy or connections. docs/protocol.md is its contract; every call in a frame
// yields a ToolCall or an Error.
package message

import "encoding/json"

// An Inbound is a decoded request: *Request, *ApprovalResponse, *ExplainPolicy, *ToolInput, *Ping,
// or a type of inbound.go.
type Inbound any

// Dialect is the form of a call and its answer.
type Dialect string

// Dialects.
const (
	OpenLetta Dialect = "openletta"
	LettaAPI  Dialect = "letta_api"
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"

	OpenAIShell      Dialect = "openai_shell"
	OpenAILocalShell Dialect = "openai_local_shell"
	OpenAIPatch      Dialect = "openai_patch"
)

// Request contains one or more tool calls.
type Request struct {
	Dialect Dialect
	Origin
	Calls []ToolCall
	Item  string          // its calls are parts of this item: run in order, answered together
	Most  *int64          // characters of each stream in the answer; nil: all
	Frame json.RawMessage // or collected fragments, for the journal
}

// ToolCall is one call of a Request. ID is never empty.
type ToolCall struct {
	ID        string
	Name      string          // possibly an alias
	Arguments json.RawMessage // exact bytes of the value, or of the string's content
	Invalid   string          // why the ambiguous call must be refused
}

// ApprovalResponse answers pending approvals.
type ApprovalResponse struct {
	Answers  []ApprovalAnswer
	Remember string // once (default), conversation, command, prefix or rule
	Pattern  string `json:",omitempty"`

	Beforehand bool // precedes the question
}

// ApprovalAnswer decides an approval named by CallID, or ApprovalID. Its JSON is an item of
// approvals.
type ApprovalAnswer struct {
	Type       string          `json:"type,omitempty"`
	CallID     string          `json:"tool_call_id,omitempty"`
	ApprovalID string          `json:"approval_request_id,omitempty"`
	Approve    bool            `json:"approve"`
	Reason     string          `json:"reason,omitempty"`
	Widen      Widening        `json:"widen,omitzero"`      // with Approve
	Arguments  json.RawMessage `json:"arguments,omitempty"` // replacement, with Approve
}

// ToolInput is input for a running call: exactly one of Data, EOF, Signal and a size. Its JSON is
// the frame.
type ToolInput struct {
	RequestID string // requests Taken
	CallID    string
	Data      []byte
	EOF       bool
	Signal    string // to the foreground group
	Leader    bool   // signal the shell only
	Rows      uint16
	Cols      uint16
}

// ExplainPolicy asks how a call would be decided.
type ExplainPolicy struct {
	RequestID string
	Call      ToolCall
}

// Asker is a call's origin and stated reason. Only Client is verified.
type Asker struct {
	Client         string   `json:"client"` // token name
	Program        *Program `json:"program,omitempty"`
	AgentID        string   `json:"agent_id,omitempty"`
	ConversationID string   `json:"conversation_id,omitempty"`
	Description    string   `json:"description,omitempty"` // call argument, 2000 bytes
	Justification  string   `json:"justification,omitempty"`
}

// Program is a client's name in hello.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

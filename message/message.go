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
	Item  string          // if set, the calls are parts of this item: run in order, answered together
	Work  string          // of an item: the same for the same commands
	Most  *int64          // characters of each stream in the answer; nil: all
	Frame json.RawMessage // the frame, or the collected fragments, for the journal
}

// ToolCall is one call of a Request. ID is never empty.
type ToolCall struct {
	ID        string
	Name      string          // possibly an alias
	Arguments json.RawMessage // exact bytes of the value; of a string's content where the dialect sends a string
	Invalid   string          // if set, the frame is ambiguous about this call: refuse it with this text
}

// ApprovalResponse answers pending approvals.
type ApprovalResponse struct {
	RequestID string `json:",omitempty"` // if set, requests an ApprovalResolved or an Error with it
	Answers   []ApprovalAnswer
	Remember  string // once (default), conversation, command, prefix or rule
	Pattern   string `json:",omitempty"` // of the rule, if Remember is rule

	Beforehand bool // sent before the question, which no one has read
}

// ApprovalAnswer decides an approval named by CallID, or ApprovalID. Its JSON is an item of
// approvals.
type ApprovalAnswer struct {
	Type       string          `json:"type,omitempty"`
	CallID     string          `json:"tool_call_id,omitempty"`
	ApprovalID string          `json:"approval_request_id,omitempty"`
	Approve    bool            `json:"approve"`
	Reason     string          `json:"reason,omitempty"`
	Widen      Widening        `json:"widen,omitzero"`      // with Approve only
	Arguments  json.RawMessage `json:"arguments,omitempty"` // replace those of the call, with Approve only
}

// ToolInput is input for a running call: exactly one of Data, EOF, Signal and a size. Its JSON is
// the frame.
type ToolInput struct {
	RequestID string // if set, requests the answer Taken
	CallID    string
	AgentID   *string // whose call; nil: not said
	Data      []byte
	EOF       bool
	Signal    string // to the foreground group
	Leader    bool   // signal the shell only
	Rows      uint16 // new size of the terminal, in characters
	Cols      uint16
}

// ExplainPolicy asks how a call would be decided, without running it.
type ExplainPolicy struct {
	RequestID string
	Call      ToolCall
}

// Asker is a call's origin and stated reason. Only Client is verified:
// the client chooses everything else.
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

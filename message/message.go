// Package message defines the messages of toold: it decodes the frames of every dialect to Inbound values, encodes
// what toold sends, and generates the JSON Schema of both.
//
// It does not know tools, policy or connections. docs/protocol.md is its specification. Every call in a frame yields a
// ToolCall or an Error.
package message

import "encoding/json"

// An Inbound is a decoded frame: *Request, *ApprovalResponse, *ExplainPolicy, *ToolInput, *Ping, or a pointer to a
// type of inbound.go.
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
	Item  string // if set, the calls are parts of this item, run in order and answered together
	Work  string // hash of an item's commands
	Most  *int64 // maximum of characters of each stream in the answer; nil: no limit
}

// ToolCall is one call of a Request. ID is never empty.
type ToolCall struct {
	ID        string
	Name      string          // may be an alias
	Arguments json.RawMessage // exact bytes of the value, or the content of a string if the dialect sends one
	Invalid   string          // if set, why the call must be refused
}

// ApprovalResponse answers pending approval requests.
type ApprovalResponse struct {
	RequestID string `json:",omitempty"` // if set, ApprovalResolved or Error repeats it
	Answers   []ApprovalAnswer
	Remember  string // once (default), conversation, command, prefix or rule
	Pattern   string `json:",omitempty"` // of the rule to write, if Remember is rule

	Beforehand bool // sent before the approval request
}

// ApprovalAnswer decides the approval request named by CallID or ApprovalID. Its JSON is an item of approvals.
type ApprovalAnswer struct {
	Type       string          `json:"type,omitempty"`
	CallID     string          `json:"tool_call_id,omitempty"`
	ApprovalID string          `json:"approval_request_id,omitempty"`
	Approve    bool            `json:"approve"`
	Reason     string          `json:"reason,omitempty"`
	Widen      Widening        `json:"widen,omitzero"`      // with Approve only
	Arguments  json.RawMessage `json:"arguments,omitempty"` // replaces the call's arguments, with Approve only
}

// ToolInput is input for a running call: exactly one of Data, EOF, Signal and a size. MarshalJSON returns its frame.
type ToolInput struct {
	RequestID string // if set, requests the answer input_taken
	CallID    string
	AgentID   *string // agent of the call; nil: any
	Data      []byte
	EOF       bool
	Signal    string // to the foreground group
	Leader    bool   // signal the shell only, not the group
	Rows      uint16 // new size of the terminal, in characters
	Cols      uint16
}

// ExplainPolicy requests the decision on a call, which does not run.
type ExplainPolicy struct {
	RequestID string
	Call      ToolCall
}

// Asker is where a call comes from and its stated reason. Only Client is verified; the client chooses all other
// fields.
type Asker struct {
	Client         string   `json:"client"` // token name
	Program        *Program `json:"program,omitempty"`
	AgentID        string   `json:"agent_id,omitempty"`
	ConversationID string   `json:"conversation_id,omitempty"`
	Description    string   `json:"description,omitempty"` // from the call's arguments, up to 2000 bytes
	Justification  string   `json:"justification,omitempty"`
}

// Program is the name of a client program, from hello.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

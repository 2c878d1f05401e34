// Package message holds the messages that toold exchanges with its clients.
//
// It decodes frames of every dialect into Inbound values, encodes what toold
// sends, and makes the JSON Schema of both. It knows no tools, policy or
// connections. A caller may rely on docs/protocol.md, and on every call in a
// frame yielding either a ToolCall or an Error.
package message

import "encoding/json"

// An Inbound is one request of a client, decoded from a frame of any dialect:
// *Request, *ApprovalResponse, *ExplainPolicy, *ToolInput, *Ping, or a type of
// inbound.go.
type Inbound any

// Dialect names the form of a call and of the answer to it.
type Dialect string

// The dialects.
const (
	OpenLetta Dialect = "openletta"
	LettaAPI  Dialect = "letta_api"
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"

	OpenAIShell      Dialect = "openai_shell"
	OpenAILocalShell Dialect = "openai_local_shell"
	OpenAIPatch      Dialect = "openai_patch"
)

// Request asks for one or more tool calls.
type Request struct {
	Dialect Dialect
	Origin
	Calls []ToolCall
	Item  string          // id of the item that the calls are parts of: they run in order and share one answer; or empty
	Most  *int64          // characters of each stream in the answer; nil: all
	Frame json.RawMessage // the frame, or the collected fragments, for the journal
}

// ToolCall is one call of a Request. ID is never empty.
type ToolCall struct {
	ID        string
	Name      string          // as sent: may be an alias
	Arguments json.RawMessage // exact bytes of the value; of a string's content where the dialect sends a string
	Invalid   string          // not empty: the frame is ambiguous about this call; refuse it with this text
}

// ApprovalResponse answers calls that await approval.
type ApprovalResponse struct {
	Answers  []ApprovalAnswer
	Remember string // "once" (also when empty), "conversation", "command", "prefix" or "rule"
	Pattern  string `json:",omitempty"` // of the rule, when Remember is "rule"

	Beforehand bool // sent before the question, which no one has read
}

// ApprovalAnswer decides one approval, named by CallID or by ApprovalID. Its JSON is that
// of an item of approvals.
type ApprovalAnswer struct {
	Type       string          `json:"type,omitempty"` // "approval"
	CallID     string          `json:"tool_call_id,omitempty"`
	ApprovalID string          `json:"approval_request_id,omitempty"` // used if CallID is empty
	Approve    bool            `json:"approve"`
	Reason     string          `json:"reason,omitempty"`
	Widen      Widening        `json:"widen,omitzero"`      // escalation of the call's sandbox; with Approve only
	Arguments  json.RawMessage `json:"arguments,omitempty"` // replace those of the call; with Approve only
}

// ToolInput is input for a running call. Exactly one of Data, EOF, Signal and the size
// is set. Its JSON is the frame.
type ToolInput struct {
	RequestID string // asks for the answer Taken
	CallID    string
	Data      []byte
	EOF       bool
	Signal    string // to the foreground process group
	Leader    bool   // send Signal to the command's shell only
	Rows      uint16 // the new size of the terminal, in characters
	Cols      uint16
}

// ExplainPolicy asks how a call would be decided, without running it.
type ExplainPolicy struct {
	RequestID string
	Call      ToolCall
}

// Asker names the origin of a call and the reason given for it. Only Client is
// verified; the client chooses everything else.
type Asker struct {
	Client         string   `json:"client"` // name of the token
	Program        *Program `json:"program,omitempty"`
	AgentID        string   `json:"agent_id,omitempty"`
	ConversationID string   `json:"conversation_id,omitempty"`
	Description    string   `json:"description,omitempty"`   // argument of the call; the first 2000 bytes
	Justification  string   `json:"justification,omitempty"` // same
}

// Program is the name that a client gives itself in its hello.
type Program struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Package message holds the messages toold exchanges and the dialects in which
// they travel.
//
// It knows nothing of tools, policy or connections. The wire contract is
// docs/protocol.md; the shapes are those of Letta's message family.
package message

import "encoding/json"

// An Inbound is one thing a client asks for, decoded from a frame of any
// dialect: *Request, *ApprovalResponse, *Cancel, *ToolInput, *ListMessages,
// *ListApprovals, *ListCalls, *GetOutput, *ExplainPolicy, *Subscribe,
// *Unsubscribe, *Hello or *Ping.
type Inbound interface{ inbound() }

// Dialect names the form in which a call came and its return must go.
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
	Dialect        Dialect
	ID             string // of the message, as sent; may be empty
	OTID           string
	AgentID        string
	ConversationID string
	RunID          string
	StepID         string
	GroupID        string
	SenderID       string
	Calls          []ToolCall
	Item           string          // not empty: the id of what the calls are parts of, which run one after the other and have one answer
	Most           *int64          // characters of each stream in the answer; nil = all
	Frame          json.RawMessage // the frame (or collected fragments) as received, for the journal
}

// ToolCall is one call of a Request. ID is never empty.
type ToolCall struct {
	ID        string
	Name      string          // as asked: may be an alias
	Arguments json.RawMessage // exact bytes of the argument value; of a string's content where the dialect sends a string
	Invalid   string          // not empty: the frame contradicts itself about this call; it must be refused with this text
}

// ApprovalResponse answers waiting approvals.
type ApprovalResponse struct {
	Answers  []ApprovalAnswer
	Remember string // "once" (also when absent), "conversation", "command", "prefix" or "rule"
	Pattern  string `json:",omitempty"` // of the rule, when Remember is "rule"

	Beforehand bool // given before the question, which nobody has read
}

// ApprovalAnswer decides one approval, named by CallID or by ApprovalID.
type ApprovalAnswer struct {
	CallID     string
	ApprovalID string
	Approve    bool
	Reason     string
	Widen      Widening        // what the call gets besides; with Approve only
	Arguments  json.RawMessage `json:",omitempty"` // to run the call with instead of its own; with Approve only
}

// Cancel stops a call, or all calls of the client.
type Cancel struct {
	CallID string
	All    bool
	Reason string
}

// ToolInput is input for a running call; exactly one of Data, EOF, Signal and
// Resize is set.
type ToolInput struct {
	RequestID string // wants an InputTaken
	CallID    string
	Data      []byte
	EOF       bool
	Signal    string // to the foreground process group
	Leader    bool   // Signal goes to the command's shell alone
	Resize    *Resize
}

// Resize is a terminal window's new size in character cells.
type Resize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// ListMessages asks for journalled messages. Before and After are message ids
// and mean older and newer, whatever the order.
type ListMessages struct {
	RequestID      string
	Before, After  string
	Limit          int  // 1–1000
	Ascending      bool // default: newest first
	RunID          string
	StepID         string
	AgentID        string
	ConversationID string
	CallID         string
	OTID           string
	GroupID        string
	SenderID       string
	Workspace      string // the root of the workspace of the calls
	MessageTypes   []string
	Status         string
}

// ListApprovals asks for the approvals that wait.
type ListApprovals struct{ RequestID string }

// ListCalls asks for the calls that are not answered yet, and with All also for
// the latest that are.
type ListCalls struct {
	RequestID string
	All       bool
}

// GetOutput asks for recorded output of a call, from Offset (bytes of the
// stream), at most Limit bytes (0 = a default).
type GetOutput struct {
	RequestID string
	CallID    string
	Stream    string // "stdout", "stderr" or "combined"
	Offset    int64
	Limit     int64
}

// ExplainPolicy asks how a call would be decided, without running it.
type ExplainPolicy struct {
	RequestID string
	Call      ToolCall
}

// Hello is the optional greeting of a client.
type Hello struct {
	Protocol   int
	ClientName string
	Version    string
	Output     string // "none", "delta" (default) or "binary"
	Workspace  string // an absolute path in a registered workspace; "" = the daemon's own
	Resume     *Resume
}

// Resume asks to go on where an earlier connection ended.
type Resume struct {
	ConnID       string // of its hello_ack; empty: the latest of this client
	LastEventSeq int64  // of the last delta that came
}

// Ping asks for a pong with the same nonce. TypeAlias is set when the client
// wrote {"type":"ping"}: the pong then carries "type" as well.
type Ping struct {
	Nonce     string
	TypeAlias bool
}

func (*Request) inbound()          {}
func (*ApprovalResponse) inbound() {}
func (*Cancel) inbound()           {}
func (*ToolInput) inbound()        {}
func (*ListMessages) inbound()     {}
func (*ListApprovals) inbound()    {}
func (*ListCalls) inbound()        {}
func (*GetOutput) inbound()        {}
func (*ExplainPolicy) inbound()    {}
func (*Hello) inbound()            {}
func (*Ping) inbound()             {}

package message

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toold/toold/internal/strict"
)

// ToolReturn is the final answer to a call, with the fields of all dialects. Complete sets derived fields.
type ToolReturn struct {
	MessageType string       `json:"message_type"`
	ID          string       `json:"id"`
	Date        string       `json:"date"` // RFC 3339
	CallID      string       `json:"tool_call_id"`
	AgentID     string       `json:"agent_id,omitempty"`
	ToolName    string       `json:"tool_name"` // as requested
	Name        string       `json:"name"`      // the same
	Status      string       `json:"status" enum:"success,error"`
	Result      string       `json:"result"` // for the model
	ToolReturn  string       `json:"tool_return"`
	Stdout      []string     `json:"stdout"`
	Stderr      []string     `json:"stderr"`
	ToolReturns []returnItem `json:"tool_returns"`
	OTID        string       `json:"otid"`
	RunID       *string      `json:"run_id"`
	StepID      *string      `json:"step_id"`
	SeqID       int64        `json:"seq_id"`

	ExitCode    *int        `json:"exit_code"`
	Signal      *string     `json:"signal"`
	TimedOut    bool        `json:"timed_out"`
	Cancelled   bool        `json:"cancelled"`
	DurationMS  int64       `json:"duration_ms"`
	Truncated   bool        `json:"truncated"`
	StdoutBytes int64       `json:"stdout_bytes"`
	StderrBytes int64       `json:"stderr_bytes"`
	Terminal    *string     `json:"terminal"`
	Order       string      `json:"order,omitempty" enum:"exact,arrival"` // of the lines in result; absent: no command ran
	Sandbox     *Sandbox    `json:"sandbox"`
	Decision    *Decision   `json:"decision"`
	ErrorType   *ErrorType  `json:"error_type"`
	Diff        *string     `json:"diff"`
	Note        string      `json:"note,omitempty"`                                             // changes by a person
	Cause       *string     `json:"cause,omitempty" enum:"timeout,cancel,client_gone,shutdown"` // why it was stopped
	Denials     []Denial    `json:"denials,omitempty"`
	Leftovers   []Leftover  `json:"leftovers,omitempty"`
	Background  *Background `json:"background,omitempty"` // background call that continues the command
	Replayed    bool        `json:"replayed,omitempty"`
	File        *File       `json:"file,omitempty"`
	Files       []File      `json:"files,omitempty"`
}

// File is the effect of a call on a file.
type File struct {
	Path         string `json:"path" jsonschema:"the file's canonical path"`
	Operation    string `json:"operation" enum:"read,create,write,edit,remove,move"`
	From         string `json:"from,omitempty" jsonschema:"where a file was that was moved"`
	Bytes        int64  `json:"bytes" jsonschema:"of the content that was returned, or that the file has now"`
	Lines        int64  `json:"lines" jsonschema:"of the same"`
	Replacements int64  `json:"replacements,omitempty" jsonschema:"that an edit made"`
	TotalLines   *int64 `json:"total_lines,omitempty" jsonschema:"that the file has which was read; absent: too many to count"`
	NextOffset   int64  `json:"next_offset,omitempty" jsonschema:"the first line that was not returned; absent: there is none"`
}

type returnItem struct {
	Type       string   `json:"type" enum:"tool"`
	CallID     string   `json:"tool_call_id"`
	Status     string   `json:"status" enum:"success,error"`
	ToolReturn string   `json:"tool_return"`
	Stdout     []string `json:"stdout"`
	Stderr     []string `json:"stderr"`
}

// Sandbox is the confinement of a call.
type Sandbox struct {
	Proxy bool `json:"proxy,omitempty"` // connections go through the proxy, decided by name

	Profile  string   `json:"profile"`
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"`
	Tier     string   `json:"tier"`
	Degraded string   `json:"degraded,omitempty"` // why it is not tier A, and the remedy
	Caches   string   `json:"caches,omitempty"`   // overlay, private or none

	Unwatched string `json:"unwatched,omitempty"` // why creation of protected names may go unnoticed

	Widened *Widening `json:"widened,omitempty"`
}

// Decision says why a call ran or did not run.
type Decision struct {
	Action string `json:"action"`
	By     string `json:"by"` // policy, person, beforehand (before the request), remembered (earlier approval) or deadline
	Rule   string `json:"rule"`
	Source string `json:"source,omitempty"` // file:line of the rule
	Reason string `json:"reason"`
	Person string `json:"person,omitempty"` // token name, unless By is policy or deadline

	Widened *Widening `json:"widened,omitempty"`

	Answer string          `json:"answer,omitempty"` // id of the remembered approval
	Edited json.RawMessage `json:"edited,omitempty"` // arguments substituted by a person
}

// IsEdited reports whether a person substituted the arguments. d may be nil.
func (d *Decision) IsEdited() bool { return d != nil && len(d.Edited) > 0 }

// HelloAck answers hello.
type HelloAck struct {
	MessageType string           `json:"message_type"`
	Protocol    int              `json:"protocol"`
	Version     string           `json:"version"`
	ConnID      string           `json:"conn_id"`
	Workspace   string           `json:"workspace"` // default workspace of this connection
	Workspaces  []string         `json:"workspaces,omitempty"`
	Roles       []string         `json:"roles"`
	Tools       []ToolDefinition `json:"tools"`
	Limits      map[string]int64 `json:"limits"`
	Sandbox     Sandbox          `json:"sandbox"`
	// Resumed answers resume. If false, the client must repeat its calls to get what it missed.
	Resumed *bool `json:"resumed,omitempty"`
}

// ToolDefinition describes a tool.
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ApprovalRequest asks an approver to decide on a call. No other frame of toold has "tool_call", because readers of
// the Letta dialects take such a frame for a request.
type ApprovalRequest struct {
	MessageType string `json:"message_type"`
	ID          string `json:"id"`
	Date        string `json:"date"`
	CallID      string `json:"tool_call_id"`
	Asker
	Workspace   string       `json:"workspace"`
	Cwd         string       `json:"cwd,omitempty"` // directory of a command
	ToolCall    shownCall    `json:"tool_call"`
	Rule        string       `json:"rule"`
	Source      string       `json:"source,omitempty"`
	Reason      string       `json:"reason"`
	Preview     Preview      `json:"preview"`
	Effects     []EffectLine `json:"effects"`
	ExpiresAt   string       `json:"expires_at"`
	Suggestions []Suggestion `json:"suggestions"` // never nil

	MayWiden *MayWiden `json:"may_widen,omitempty"` // nil: no escalation is possible
}

// Remembers reports whether an answer to the request can be remembered in this way.
func (r ApprovalRequest) Remembers(remember string) bool {
	return slices.ContainsFunc(r.Suggestions, func(s Suggestion) bool { return s.Remember == remember })
}

// Named reports whether id names the request or its call. A call's id that looks like an approval id does not count,
// because agents choose these ids.
func (r ApprovalRequest) Named(id string) bool {
	return r.ID == id || r.CallID == id && !strings.HasPrefix(id, "approval-")
}

// Suggestion is a way to remember an approval. Policy changes are suggested only if they allow the call.
type Suggestion struct {
	Remember string   `json:"remember"`          // conversation, command or prefix
	Changes  []string `json:"changes,omitempty"` // lines to add to the user's policy file

	WouldAllow    []string `json:"would_allow,omitempty"`     // other recorded calls
	AllowsRefused []string `json:"allows_refused,omitempty"`  // recorded calls that a person refused
	WouldNotAllow []string `json:"would_not_allow,omitempty"` // similar commands
}

type shownCall struct {
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"`
}

// Shown returns the call for people and the journal. Invalid JSON in arguments becomes a string, so that readers can
// parse the result.
func (c ToolCall) Shown() shownCall {
	s := shownCall{c.ID, c.Name, c.Name, c.Arguments}
	if !validArguments(s.Arguments) {
		s.Arguments = appendString(nil, []byte(c.Arguments))
	}
	return s
}

// Recorded encodes a request with only this call for the journal. It is equivalent to Encode, but faster.
func (c ToolCall) Recorded(from Origin) ([]byte, error) {
	shown := c.Shown()
	arguments := shown.Arguments
	shown.Arguments = nil
	text, err := Encode(struct {
		Origin
		ToolCall shownCall `json:"tool_call"`
	}{from, shown})
	if err != nil {
		return nil, err
	}
	text = strict.Compact(bytes.TrimSuffix(text, []byte("null}}")), arguments)
	return append(text, "}}"...), nil
}

// Preview shows what a call would do.
type Preview struct {
	Text string `json:"text"`
	Diff string `json:"diff,omitempty"`
}

// EffectLine is one effect of a call. explain_policy adds the decision on it.
type EffectLine struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Source string `json:"source,omitempty"`
	Action string `json:"action,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ApprovalResolved reports the outcome of an approval request.
type ApprovalResolved struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id,omitempty"` // of the deciding answer; sent only to its sender
	ID          string `json:"id"`
	CallID      string `json:"tool_call_id"`
	Approve     bool   `json:"approve"`
	By          string `json:"by"`
	Reason      string `json:"reason"`

	Widened *Widening `json:"widened,omitempty"`
}

// PolicyDecision reports the policy's decision on a call.
type PolicyDecision struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Action      string `json:"action"`
	Rule        string `json:"rule"`
	Source      string `json:"source,omitempty"`
	Reason      string `json:"reason"`
}

// ConnectionDecision reports whether a running call may contact a host through the proxy.
type ConnectionDecision struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Ports       []int  `json:"ports,omitempty"` // if one approval decided on several ports
	Action      string `json:"action"`
	By          string `json:"by"`
	Rule        string `json:"rule"`
	Source      string `json:"source,omitempty"`
	Reason      string `json:"reason"`
}

// ToolStarted reports that the process of a call runs.
type ToolStarted struct {
	MessageType string  `json:"message_type"`
	CallID      string  `json:"tool_call_id"`
	AgentID     string  `json:"agent_id,omitempty"`
	PID         int     `json:"pid"`
	Terminal    string  `json:"terminal"`
	Sandbox     Sandbox `json:"sandbox"`
	Channel     uint32  `json:"channel,omitempty"` // of binary frames; see OutputDelta.AppendBinary
}

// OutputDelta is live output. Offset counts bytes of the stream.
type OutputDelta struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Stream      string `json:"stream"`
	Offset      int64  `json:"offset"`
	Data        string `json:"data,omitempty"`
	DataB64     string `json:"data_b64,omitempty"` // instead of data, if not UTF-8
	EventSeq    int64  `json:"event_seq"`
	Gap         *Gap   `json:"gap,omitempty"` // bytes before Offset that were not sent
}

// Gap is a range of bytes that was not sent; get_output returns it.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Messages answers list_messages.
type Messages struct {
	MessageType string            `json:"message_type"`
	RequestID   string            `json:"request_id"`
	Messages    []json.RawMessage `json:"messages"`
	HasMore     bool              `json:"has_more"`
	NextBefore  string            `json:"next_before,omitempty"`
	NextAfter   string            `json:"next_after,omitempty"`
	Lost        string            `json:"lost,omitempty"` // why messages are missing
}

// Output answers get_output.
type Output struct {
	MessageType string  `json:"message_type"`
	RequestID   string  `json:"request_id"`
	CallID      string  `json:"tool_call_id"`
	Stream      string  `json:"stream"`
	Data        *string `json:"data,omitempty"`     // "" if there are no bytes
	DataB64     string  `json:"data_b64,omitempty"` // instead of data, if not UTF-8
	Offset      int64   `json:"offset"`             // of the first byte; later than requested if output is no longer kept
	NextOffset  int64   `json:"next_offset"`
	EOF         bool    `json:"eof"`           // no more bytes are kept, and none will follow
	Gap         *Gap    `json:"gap,omitempty"` // bytes that are no longer kept, before Offset or at the end
}

type approvals struct {
	MessageType string            `json:"message_type"`
	RequestID   string            `json:"request_id"`
	Approvals   []ApprovalRequest `json:"approvals"`
}

// Answer returns the approvals frame for l.
func (l *ListApprovals) Answer(list []ApprovalRequest) any {
	return approvals{"approvals", l.RequestID, list}
}

// PolicyExplanation answers explain_policy.
type PolicyExplanation struct {
	MessageType string       `json:"message_type"`
	RequestID   string       `json:"request_id"`
	Action      string       `json:"action"`
	Rule        string       `json:"rule"`
	Source      string       `json:"source,omitempty"`
	Reason      string       `json:"reason"`
	Change      string       `json:"change,omitempty"`
	Effects     []EffectLine `json:"effects"`
}

type pong struct {
	MessageType string `json:"message_type"`
	Type        string `json:"type,omitempty"`
	Nonce       string `json:"nonce,omitempty"`
}

// Answer returns the pong for p.
func (p *Ping) Answer() any {
	answer := pong{MessageType: "pong", Nonce: p.Nonce}
	if p.TypeAlias {
		answer.Type = "pong"
	}
	return answer
}

// WaitingForInput reports that a program of the call has begun or stopped waiting for input, according to the kernel.
type WaitingForInput struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Waiting     bool   `json:"waiting"` // false: no longer
	Kind        string `json:"kind"`    // line, password, or tui (single keys)
	Since       string `json:"since,omitempty"`
	PID         int    `json:"pid"` // in the call's pid namespace
	Command     string `json:"command"`
}

type inputTaken struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id"`
	CallID      string `json:"tool_call_id"`
}

// Taken returns the input_taken frame for the time when the command has the data.
func (in *ToolInput) Taken() any { return inputTaken{"input_taken", in.RequestID, in.CallID} }

package message

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toold/toold/internal/strict"
)

// ToolReturn is the final answer to a call, in all dialects' fields. Create it with Complete.
type ToolReturn struct {
	MessageType string       `json:"message_type"`
	ID          string       `json:"id"`
	Date        string       `json:"date"` // RFC 3339
	CallID      string       `json:"tool_call_id"`
	AgentID     string       `json:"agent_id,omitempty"`
	ToolName    string       `json:"tool_name"` // as requested
	Name        string       `json:"name"`      // same
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
	Order       string      `json:"order,omitempty" enum:"exact,arrival"` // of the result's lines; absent: no command ran
	Sandbox     *Sandbox    `json:"sandbox"`
	Decision    *Decision   `json:"decision"`
	ErrorType   *ErrorType  `json:"error_type"`
	Diff        *string     `json:"diff"`
	Note        string      `json:"note,omitempty"`                                             // what a person changed of the call; result begins with it
	Cause       *string     `json:"cause,omitempty" enum:"timeout,cancel,client_gone,shutdown"` // why toold stopped it
	Denials     []Denial    `json:"denials,omitempty"`
	Leftovers   []Leftover  `json:"leftovers,omitempty"`
	Background  *Background `json:"background,omitempty"` // the call as which the command continues
	Replayed    bool        `json:"replayed,omitempty"`
	File        *File       `json:"file,omitempty"`
	Files       []File      `json:"files,omitempty"`
}

// File is a call's effect on a file.
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

// Sandbox is a call's confinement.
type Sandbox struct {
	Proxy bool `json:"proxy,omitempty"` // connections go through toold, by name

	Profile  string   `json:"profile"`
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"`
	Tier     string   `json:"tier"`
	Degraded string   `json:"degraded,omitempty"` // why not tier A, and the remedy
	Caches   string   `json:"caches,omitempty"`   // overlay, private or none

	Unwatched string `json:"unwatched,omitempty"` // why protected names may be created unseen

	Widened *Widening `json:"widened,omitempty"`
}

// Decision is why a call ran, or not.
type Decision struct {
	Action string `json:"action"`
	By     string `json:"by"` // policy, person, beforehand (yes before the question), remembered (earlier yes) or deadline
	Rule   string `json:"rule"`
	Source string `json:"source,omitempty"` // file:line of the rule
	Reason string `json:"reason"`
	Person string `json:"person,omitempty"` // token name, unless By is policy or deadline

	Widened *Widening `json:"widened,omitempty"`

	Answer string          `json:"answer,omitempty"` // approval id, if remembered
	Edited json.RawMessage `json:"edited,omitempty"` // arguments that a person substituted
}

// IsEdited reports whether a person substituted the arguments. It is false for nil.
func (d *Decision) IsEdited() bool { return d != nil && len(d.Edited) > 0 }

// HelloAck answers hello.
type HelloAck struct {
	MessageType string           `json:"message_type"`
	Protocol    int              `json:"protocol"`
	Version     string           `json:"version"`
	ConnID      string           `json:"conn_id"`
	Workspace   string           `json:"workspace"` // default of this connection
	Workspaces  []string         `json:"workspaces,omitempty"`
	Roles       []string         `json:"roles"`
	Tools       []ToolDefinition `json:"tools"`
	Limits      map[string]int64 `json:"limits"`
	Sandbox     Sandbox          `json:"sandbox"`
	// Resumed answers resume. If false, the client repeats its calls to get what it missed.
	Resumed *bool `json:"resumed,omitempty"`
}

// ToolDefinition describes a tool.
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ApprovalRequest asks an approver about a call. No other frame of toold has "tool_call", which
// family readers take for a request.
type ApprovalRequest struct {
	MessageType string `json:"message_type"`
	ID          string `json:"id"`
	Date        string `json:"date"`
	CallID      string `json:"tool_call_id"`
	Asker
	Workspace   string       `json:"workspace"`
	Cwd         string       `json:"cwd,omitempty"` // where a command runs
	ToolCall    shownCall    `json:"tool_call"`
	Rule        string       `json:"rule"`
	Source      string       `json:"source,omitempty"`
	Reason      string       `json:"reason"`
	Preview     Preview      `json:"preview"`
	Effects     []EffectLine `json:"effects"`
	ExpiresAt   string       `json:"expires_at"`
	Suggestions []Suggestion `json:"suggestions"` // never nil

	MayWiden *MayWiden `json:"may_widen,omitempty"` // nil: no escalation
}

// Remembers reports whether an answer may count for longer than its call, in this way.
func (r ApprovalRequest) Remembers(remember string) bool {
	return slices.ContainsFunc(r.Suggestions, func(s Suggestion) bool { return s.Remember == remember })
}

// Named reports whether id names the request or its call. Agents choose call ids: one that looks
// like an approval's does not count.
func (r ApprovalRequest) Named(id string) bool {
	return r.ID == id || r.CallID == id && !strings.HasPrefix(id, "approval-")
}

// Suggestion is a way to remember a yes. Policy changes are suggested only if they allow the call.
type Suggestion struct {
	Remember string   `json:"remember"`          // conversation, command or prefix
	Changes  []string `json:"changes,omitempty"` // to the user's policy file, by line

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

// Shown returns the call for people and the journal. Arguments that are no JSON become a string: a
// reader that parses them must not get what cannot be parsed.
func (c ToolCall) Shown() shownCall {
	s := shownCall{c.ID, c.Name, c.Name, c.Arguments}
	if !validArguments(s.Arguments) {
		s.Arguments = appendString(nil, []byte(c.Arguments))
	}
	return s
}

// Recorded encodes a request with this call alone for the journal, as Encode would but faster.
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

// Preview shows a call's intent.
type Preview struct {
	Text string `json:"text"`
	Diff string `json:"diff,omitempty"`
}

// EffectLine is one effect; explain_policy adds its own decision.
type EffectLine struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Source string `json:"source,omitempty"`
	Action string `json:"action,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ApprovalResolved reports an approval's outcome.
type ApprovalResolved struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id,omitempty"` // of the answer that counted, for its sender alone
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

// ConnectionDecision reports whether a running call may contact a host (network proxy).
type ConnectionDecision struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Ports       []int  `json:"ports,omitempty"` // if one answer of a person decided several
	Action      string `json:"action"`
	By          string `json:"by"`
	Rule        string `json:"rule"`
	Source      string `json:"source,omitempty"`
	Reason      string `json:"reason"`
}

// ToolStarted reports that a call's process runs.
type ToolStarted struct {
	MessageType string  `json:"message_type"`
	CallID      string  `json:"tool_call_id"`
	AgentID     string  `json:"agent_id,omitempty"`
	PID         int     `json:"pid"`
	Terminal    string  `json:"terminal"`
	Sandbox     Sandbox `json:"sandbox"`
	Channel     uint32  `json:"channel,omitempty"` // of binary frames; see OutputDelta.AppendBinary
}

// OutputDelta is live output. Offset counts its stream's bytes.
type OutputDelta struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Stream      string `json:"stream"`
	Offset      int64  `json:"offset"`
	Data        string `json:"data,omitempty"`
	DataB64     string `json:"data_b64,omitempty"` // if not UTF-8
	EventSeq    int64  `json:"event_seq"`
	Gap         *Gap   `json:"gap,omitempty"` // unsent bytes before Offset
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
	Data        *string `json:"data,omitempty"`     // "" if there is nothing to return
	DataB64     string  `json:"data_b64,omitempty"` // instead, if not UTF-8
	Offset      int64   `json:"offset"`             // of the first byte; later than requested if output is not kept
	NextOffset  int64   `json:"next_offset"`
	EOF         bool    `json:"eof"`           // nothing more is kept, and nothing more will come
	Gap         *Gap    `json:"gap,omitempty"` // bytes that are not kept: before Offset, or at the end
}

type approvals struct {
	MessageType string            `json:"message_type"`
	RequestID   string            `json:"request_id"`
	Approvals   []ApprovalRequest `json:"approvals"`
}

// Answer returns the answer to l.
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

// Answer returns the answer to p.
func (p *Ping) Answer() any {
	answer := pong{MessageType: "pong", Nonce: p.Nonce}
	if p.TypeAlias {
		answer.Type = "pong"
	}
	return answer
}

// WaitingForInput reports that a program of the call waits for input, or continues, by the kernel's
// state.
type WaitingForInput struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Waiting     bool   `json:"waiting"` // false: it continues
	Kind        string `json:"kind"`    // line, password, or tui: single keys
	Since       string `json:"since,omitempty"`
	PID         int    `json:"pid"` // in the call's pid namespace
	Command     string `json:"command"`
}

type inputTaken struct {
	MessageType string `json:"message_type"`
	RequestID   string `json:"request_id"`
	CallID      string `json:"tool_call_id"`
}

// Taken returns the answer once the command has the data.
func (in *ToolInput) Taken() any { return inputTaken{"input_taken", in.RequestID, in.CallID} }

package message

import (
	"encoding/json"
	"slices"
	"strings"
)

// ToolReturn is the terminal answer to a call, with the fields of every dialect
// of the family. Make it with Complete.
type ToolReturn struct {
	MessageType string       `json:"message_type"` // "tool_return_message"
	ID          string       `json:"id"`           // "message-<uuid>"
	Date        string       `json:"date"`         // RFC 3339
	CallID      string       `json:"tool_call_id"`
	ToolName    string       `json:"tool_name"` // as asked
	Name        string       `json:"name"`      // same
	Status      string       `json:"status" enum:"success,error"`
	Result      string       `json:"result"` // what the model reads
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
	Order       string      `json:"order,omitempty" enum:"exact,arrival"` // of the lines of both streams in result; absent when no command ran
	Sandbox     *Sandbox    `json:"sandbox"`
	Decision    *Decision   `json:"decision"`
	ErrorType   *ErrorType  `json:"error_type"`
	Diff        *string     `json:"diff"`
	Cause       *string     `json:"cause,omitempty" enum:"timeout,cancel,client_gone,shutdown"` // why toold stopped it
	Denials     []Denial    `json:"denials,omitempty"`
	Leftovers   []Leftover  `json:"leftovers,omitempty"`
	Background  *Background `json:"background,omitempty"` // the call as which the command continues
	Replayed    bool        `json:"replayed,omitempty"`
	File        *File       `json:"file,omitempty"`  // effect on a file
	Files       []File      `json:"files,omitempty"` // effect on each of several files
}

// File is the effect of a call on one file.
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
	Proxy bool `json:"proxy,omitempty"` // connections go through toold, by name

	Profile  string   `json:"profile"`
	Enforced []string `json:"enforced"`
	Network  bool     `json:"network"`
	Tier     string   `json:"tier"`
	Degraded string   `json:"degraded,omitempty"` // why the tier is not A, and how to fix it
	Caches   string   `json:"caches,omitempty"`   // "overlay", "private" or none

	Unwatched string `json:"unwatched,omitempty"` // why protected names could be created unseen

	Widened *Widening `json:"widened,omitempty"` // escalation
}

// Decision is why a call ran or did not.
type Decision struct {
	Action string `json:"action"` // "allow" or "deny"
	By     string `json:"by"`     // "policy", "person", "beforehand" (a yes before the question), "remembered" (a yes to an earlier call of the conversation) or "deadline"
	Rule   string `json:"rule"`
	Source string `json:"source,omitempty"` // file:line of the rule
	Reason string `json:"reason"`
	Person string `json:"person,omitempty"` // whose token answered, when By is "person", "beforehand" or "remembered"

	Widened *Widening `json:"widened,omitempty"` // escalation

	Answer string          `json:"answer,omitempty"` // id of the approval that allowed it, when By is "remembered"
	Edited json.RawMessage `json:"edited,omitempty"` // arguments that a person substituted
}

// HelloAck greets a client that said hello.
type HelloAck struct {
	MessageType string           `json:"message_type"` // "hello_ack"
	Protocol    int              `json:"protocol"`
	Version     string           `json:"version"`
	ConnID      string           `json:"conn_id"`
	Workspace   string           `json:"workspace"`            // of this connection's calls, unless they name another
	Workspaces  []string         `json:"workspaces,omitempty"` // that are registered
	Roles       []string         `json:"roles"`
	Tools       []ToolDefinition `json:"tools"`
	Limits      map[string]int64 `json:"limits"`
	Sandbox     Sandbox          `json:"sandbox"`
	// Resumed reports, in the answer to a hello with resume, whether that connection
	// is known. If not, the client repeats its calls to get what it missed.
	Resumed *bool `json:"resumed,omitempty"`
}

// ToolDefinition describes a tool to a client.
type ToolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// ApprovalRequest asks an approver to decide a call. It is toold's only frame with
// "tool_call", for which the family's readers look in a request.
type ApprovalRequest struct {
	MessageType string `json:"message_type"` // "approval_request_message"
	ID          string `json:"id"`           // the approval's id
	Date        string `json:"date"`
	CallID      string `json:"tool_call_id"`
	Asker
	ToolCall    shownCall    `json:"tool_call"`
	Rule        string       `json:"rule"`
	Source      string       `json:"source,omitempty"`
	Reason      string       `json:"reason"`
	Preview     Preview      `json:"preview"`
	Effects     []EffectLine `json:"effects"`
	ExpiresAt   string       `json:"expires_at"`
	Suggestions []Suggestion `json:"suggestions"` // ways to remember a yes; never absent

	MayWiden *MayWiden `json:"may_widen,omitempty"` // limits of an escalation; absent: none is possible
}

// Remembers reports whether an answer to the request may count for longer than its call, in
// the way that remember says.
func (r ApprovalRequest) Remembers(remember string) bool {
	return slices.ContainsFunc(r.Suggestions, func(s Suggestion) bool { return s.Remember == remember })
}

// Named reports whether an answer under id is about the request: id is its own, or that of its
// call. Agents choose the latter, so one that looks like an approval's names no call.
func (r ApprovalRequest) Named(id string) bool {
	return r.ID == id || r.CallID == id && !strings.HasPrefix(id, "approval-")
}

// Suggestion is a way to remember a yes. A change of the policy file is offered only
// if it allows the call.
type Suggestion struct {
	Remember string   `json:"remember"`          // "conversation", "command" or "prefix"
	Changes  []string `json:"changes,omitempty"` // of the user's policy file, one line each

	WouldAllow    []string `json:"would_allow,omitempty"`     // other recorded calls that it would have allowed
	AllowsRefused []string `json:"allows_refused,omitempty"`  // recorded calls that it would allow though a person refused them
	WouldNotAllow []string `json:"would_not_allow,omitempty"` // similar commands
}

type shownCall struct {
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	Name       string          `json:"name"`
	Arguments  json.RawMessage `json:"arguments"` // always an object, but for a call that is refused
}

// Shown returns the call as people and the journal see it. Arguments that are no JSON
// become a string: a reader that parses them must not get what cannot be parsed.
func (c ToolCall) Shown() shownCall {
	s := shownCall{c.ID, c.Name, c.Name, c.Arguments}
	if !json.Valid(s.Arguments) {
		s.Arguments, _ = Encode(string(c.Arguments)) // cannot fail
	}
	return s
}

// Preview shows what a call will do.
type Preview struct {
	Text string `json:"text"`
	Diff string `json:"diff,omitempty"`
}

// EffectLine is one effect of a call and, in answers to explain_policy, the
// decision about it alone.
type EffectLine struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Source string `json:"source,omitempty"`
	Action string `json:"action,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ApprovalResolved reports the decision of an approval.
type ApprovalResolved struct {
	MessageType string `json:"message_type"` // "approval_resolved"
	ID          string `json:"id"`
	CallID      string `json:"tool_call_id"`
	Approve     bool   `json:"approve"`
	By          string `json:"by"`
	Reason      string `json:"reason"`

	Widened *Widening `json:"widened,omitempty"` // escalation
}

// PolicyDecision reports the decision of the policy about a call.
type PolicyDecision struct {
	MessageType string `json:"message_type"` // "policy_decision"
	CallID      string `json:"tool_call_id"`
	Action      string `json:"action"`
	Rule        string `json:"rule"`
	Source      string `json:"source,omitempty"`
	Reason      string `json:"reason"`
}

// ConnectionDecision reports whether a running call may contact a host, if the
// sandbox's network is proxy.
type ConnectionDecision struct {
	MessageType string `json:"message_type"` // "connection_decision"
	CallID      string `json:"tool_call_id"`
	Host        string `json:"host"`
	Port        int    `json:"port"`
	Ports       []int  `json:"ports,omitempty"` // if one answer of a person decided several
	Action      string `json:"action"`          // "allow" or "deny"
	By          string `json:"by"`              // "policy", "person", "beforehand" (a yes before the question) or "deadline"
	Rule        string `json:"rule"`
	Source      string `json:"source,omitempty"`
	Reason      string `json:"reason"`
}

// ToolStarted reports that a call's process runs.
type ToolStarted struct {
	MessageType string  `json:"message_type"` // "tool_started"
	CallID      string  `json:"tool_call_id"`
	PID         int     `json:"pid"`
	Terminal    string  `json:"terminal"`
	Sandbox     Sandbox `json:"sandbox"`
	Channel     uint32  `json:"channel,omitempty"` // names the call in binary frames; see OutputDelta.AppendBinary
}

// OutputDelta is a piece of live output. Offset counts bytes of its stream.
type OutputDelta struct {
	MessageType string `json:"message_type"` // "tool_output_delta"
	CallID      string `json:"tool_call_id"`
	Stream      string `json:"stream"`
	Offset      int64  `json:"offset"`
	Data        string `json:"data,omitempty"`
	DataB64     string `json:"data_b64,omitempty"` // instead of data if the bytes are not UTF-8
	EventSeq    int64  `json:"event_seq"`
	Gap         *Gap   `json:"gap,omitempty"` // bytes before Offset that were not sent
}

// Gap is a range of bytes that a slow reader was not sent. get_output returns them.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Messages answers list_messages.
type Messages struct {
	MessageType string            `json:"message_type"` // "messages"
	RequestID   string            `json:"request_id"`
	Messages    []json.RawMessage `json:"messages"`
	HasMore     bool              `json:"has_more"`
	NextBefore  string            `json:"next_before,omitempty"`
	NextAfter   string            `json:"next_after,omitempty"`
	Lost        string            `json:"lost,omitempty"` // why messages are missing that belong here
}

// Output answers get_output.
type Output struct {
	MessageType string  `json:"message_type"` // "output"
	RequestID   string  `json:"request_id"`
	CallID      string  `json:"tool_call_id"`
	Stream      string  `json:"stream"`
	Data        *string `json:"data,omitempty"`     // empty if there is nothing to return
	DataB64     string  `json:"data_b64,omitempty"` // instead of data if the bytes are not UTF-8
	Offset      int64   `json:"offset"`             // of the first byte; later than requested if output is not kept
	NextOffset  int64   `json:"next_offset"`
	EOF         bool    `json:"eof"`           // nothing more is kept, and nothing more will come
	Gap         *Gap    `json:"gap,omitempty"` // bytes that are not kept: before Offset, or at the end
}

type approvals struct {
	MessageType string            `json:"message_type"` // "approvals"
	RequestID   string            `json:"request_id"`
	Approvals   []ApprovalRequest `json:"approvals"`
}

// Answer returns the answer to l.
func (l *ListApprovals) Answer(list []ApprovalRequest) any {
	return approvals{"approvals", l.RequestID, list}
}

// PolicyExplanation answers explain_policy.
type PolicyExplanation struct {
	MessageType string       `json:"message_type"` // "policy_explanation"
	RequestID   string       `json:"request_id"`
	Action      string       `json:"action"`
	Rule        string       `json:"rule"`
	Source      string       `json:"source,omitempty"`
	Reason      string       `json:"reason"`
	Change      string       `json:"change,omitempty"`
	Effects     []EffectLine `json:"effects"`
}

type pong struct {
	MessageType string `json:"message_type"` // "pong"
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

// WaitingForInput reports that a program of a running call waits for input, or
// that it continues. It follows the kernel's state, not the output.
type WaitingForInput struct {
	MessageType string `json:"message_type"` // "waiting_for_input"
	CallID      string `json:"tool_call_id"`
	Waiting     bool   `json:"waiting"`         // false: it continues
	Kind        string `json:"kind"`            // "line", "password", or "tui": single keys
	Since       string `json:"since,omitempty"` // RFC 3339
	PID         int    `json:"pid"`             // in the call's pid namespace
	Command     string `json:"command"`         // that waits
}

// inputTaken answers a tool_input that carries a request_id: its data was written
// to the command's terminal or pipe.
type inputTaken struct {
	MessageType string `json:"message_type"` // "input_taken"
	RequestID   string `json:"request_id"`
	CallID      string `json:"tool_call_id"`
}

// Taken returns the answer to in once its command has the data.
func (in *ToolInput) Taken() any { return inputTaken{"input_taken", in.RequestID, in.CallID} }

type subscribed struct {
	MessageType string `json:"message_type"` // "subscribed"
	RequestID   string `json:"request_id"`
	After       int64  `json:"after"` // messages of the journal after this number follow
}

// Answer returns the answer to s: messages of the journal after a number follow it.
func (s *Subscribe) Answer(after int64) any { return subscribed{"subscribed", s.RequestID, after} }

type unsubscribed struct {
	MessageType string `json:"message_type"` // "unsubscribed"
	RequestID   string `json:"request_id"`
}

// Answer returns the answer to u.
func (u *Unsubscribe) Answer() any { return unsubscribed{"unsubscribed", u.RequestID} }

// SubscriptionEvent is one event of a call.
type SubscriptionEvent struct {
	MessageType    string          `json:"message_type"` // "subscription_event"
	RequestID      string          `json:"request_id"`   // of the subscribe
	Topic          string          `json:"topic" enum:"request,return,connection,record,decision,question,answer,queued,started,waiting,output"`
	Seq            int64           `json:"seq,omitempty"` // number in the journal; absent: it is not there
	Client         string          `json:"client"`
	AgentID        string          `json:"agent_id,omitempty"`
	ConversationID string          `json:"conversation_id,omitempty"`
	Event          json.RawMessage `json:"event"` // the frame
}

// SubscriptionGap reports events that a slow subscriber was not sent. Those in the
// journal follow.
type SubscriptionGap struct {
	MessageType string `json:"message_type"` // "subscription_gap"
	RequestID   string `json:"request_id"`
	Skipped     int64  `json:"skipped"` // events, of all calls; some may follow
	After       int64  `json:"after"`   // messages of the journal after this number follow
}

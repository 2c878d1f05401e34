package message

import "time"

// BackgroundPrefix begins the ids of background calls. Requests may not use it, so that such an id
// never names anything else.
const BackgroundPrefix = "background-"

// Causes for which toold stops a call.
const (
	ByTimeout    = "timeout"     // timeout expired
	ByCancel     = "cancel"      // cancel frame
	ByClientGone = "client_gone" // its client was away longer than limits.linger
	ByShutdown   = "shutdown"    // daemon stopped
)

// Leftover is a process that outlived its command, and was killed.
type Leftover struct {
	PID     int    `json:"pid"` // in the command's pid namespace
	Command string `json:"command"`
}

// Background names the call as which a command continues after the return of its parent.
type Background struct {
	CallID    string `json:"tool_call_id"`
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
}

// BackgroundEnded reports a background call's end, without the fields that mark a return.
type BackgroundEnded struct {
	MessageType  string     `json:"message_type"`
	ID           string     `json:"id"`
	Date         string     `json:"date"`
	CallID       string     `json:"tool_call_id"`
	AgentID      string     `json:"agent_id,omitempty"`
	BackgroundOf string     `json:"background_of"`
	ToolName     string     `json:"tool_name"`
	Outcome      string     `json:"outcome"` // success or error
	Result       string     `json:"result"`
	ExitCode     *int       `json:"exit_code"`
	Signal       *string    `json:"signal"`
	ErrorType    *ErrorType `json:"error_type"`
	Cause        *string    `json:"cause,omitempty" enum:"timeout,cancel,client_gone,shutdown"`
	DurationMS   int64      `json:"duration_ms"`
	StdoutBytes  int64      `json:"stdout_bytes"`
	StderrBytes  int64      `json:"stderr_bytes"`
	Leftovers    []Leftover `json:"leftovers,omitempty"`
	Denials      []Denial   `json:"denials,omitempty"`
}

// BackgroundEnded reports the return of a background call, whose parent is of.
func (r ToolReturn) BackgroundEnded(of string) BackgroundEnded {
	return BackgroundEnded{
		MessageType: "background_ended", ID: r.ID, Date: r.Date, CallID: r.CallID, AgentID: r.AgentID, BackgroundOf: of, ToolName: r.ToolName,
		Outcome: r.Status, Result: r.Result, ExitCode: r.ExitCode, Signal: r.Signal, ErrorType: r.ErrorType, Cause: r.Cause,
		DurationMS: r.DurationMS, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Leftovers: r.Leftovers, Denials: r.Denials,
	}
}

// ToolQueued reports that a call waits for others to end. It is sent again, at most once a second,
// when the position changes.
type ToolQueued struct {
	MessageType string `json:"message_type"`
	CallID      string `json:"tool_call_id"`
	AgentID     string `json:"agent_id,omitempty"`
	Position    int    `json:"position"` // 1 is next
}

type accepted struct {
	MessageType string   `json:"message_type"`
	CallIDs     []string `json:"tool_call_ids"`
	Message     string   `json:"message"`
	Errors      []*Error `json:"errors,omitempty"` // of calls that cannot be answered
}

const cancelledLater = ": no id runs twice. What no one asks for is cancelled after limits.linger"

// Accepted answers an HTTP request while some of its calls run; bad are the errors of the others.
func (r *Request) Accepted(bad []*Error) any {
	if r.Item != "" {
		return accepted{"accepted", []string{r.Item}, "not every command has ended; send the same request again, which waits for the rest and begins it" + cancelledLater, bad}
	}
	a := accepted{"accepted", nil, "not every call has ended; ask with GET /v1/calls/ID, or send the same request again" + cancelledLater, bad}
	for _, call := range r.Calls {
		a.CallIDs = append(a.CallIDs, call.ID)
	}
	return a
}

type calls struct {
	MessageType string     `json:"message_type"`
	RequestID   string     `json:"request_id"`
	Calls       []CallInfo `json:"calls"`
}

// Answer returns the answer to l.
func (l *ListCalls) Answer(list []CallInfo) any { return calls{"calls", l.RequestID, list} }

// States of a call.
const (
	CallReceived = "received" // being judged
	CallWaiting  = "waiting"  // for approval
	CallQueued   = "queued"   // for other calls
	CallRunning  = "running"
	CallEnded    = "ended"
)

// CallInfo describes a call in a list.
type CallInfo struct {
	CallID string `json:"tool_call_id"`
	Asker
	ToolName     string     `json:"tool_name"`
	BackgroundOf string     `json:"background_of,omitempty"` // of a background call: the call that began it
	State        string     `json:"state"`
	Position     int        `json:"position,omitempty"`
	Preview      string     `json:"preview,omitempty"`
	PID          int        `json:"pid,omitempty"`
	ReceivedAt   string     `json:"received_at"`
	StartedAt    string     `json:"started_at,omitempty"`
	EndedAt      string     `json:"ended_at,omitempty"`
	Outcome      string     `json:"outcome,omitempty"`
	ErrorType    *ErrorType `json:"error_type,omitempty"`
	ExitCode     *int       `json:"exit_code,omitempty"`
	Signal       string     `json:"signal,omitempty"`
	Denials      int        `json:"denials,omitempty"`
	StdoutBytes  int64      `json:"stdout_bytes"`
	StderrBytes  int64      `json:"stderr_bytes"`
}

// Instant formats a time for the wire; the zero time is "".
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return date(t)
}

package message

import "time"

// BackgroundPrefix begins the ids of background calls. Requests must not use it, so that these ids are unambiguous.
const BackgroundPrefix = "background-"

// Causes for which toold stops a call.
const (
	ByTimeout    = "timeout"     // timeout expired
	ByCancel     = "cancel"      // cancel frame
	ByClientGone = "client_gone" // client away longer than limits.linger
	ByShutdown   = "shutdown"    // daemon stopped
)

// Leftover is a process that outlived its command and was killed.
type Leftover struct {
	PID     int    `json:"pid"` // in the command's pid namespace
	Command string `json:"command"`
}

// Background names the background call that continues after the return of its parent.
type Background struct {
	CallID    string `json:"tool_call_id"`
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"`
}

// BackgroundEnded reports the end of a background call. It has none of the fields by which clients recognize a return.
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

// BackgroundEnded converts the return of a background call. of is the id of its parent.
func (r ToolReturn) BackgroundEnded(of string) BackgroundEnded {
	return BackgroundEnded{
		MessageType: "background_ended", ID: r.ID, Date: r.Date, CallID: r.CallID, AgentID: r.AgentID, BackgroundOf: of, ToolName: r.ToolName,
		Outcome: r.Status, Result: r.Result, ExitCode: r.ExitCode, Signal: r.Signal, ErrorType: r.ErrorType, Cause: r.Cause,
		DurationMS: r.DurationMS, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Leftovers: r.Leftovers, Denials: r.Denials,
	}
}

// ToolQueued reports that a call waits for a slot. It is sent again when the position changes, at most once a second.
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
	Errors      []*Error `json:"errors,omitempty"` // of calls that cannot get a return
}

const cancelledLater = ": no id runs twice. What no one asks for is cancelled after limits.linger"

// Accepted answers an HTTP request while some of its calls still run. bad has the errors of the others.
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

// Answer returns the calls frame for l.
func (l *ListCalls) Answer(list []CallInfo) any { return calls{"calls", l.RequestID, list} }

// States of a call.
const (
	CallReceived = "received" // not yet decided
	CallWaiting  = "waiting"  // awaits approval
	CallQueued   = "queued"   // waits for a slot
	CallRunning  = "running"
	CallEnded    = "ended"
)

// CallInfo describes a call in the answer to list_calls.
type CallInfo struct {
	CallID string `json:"tool_call_id"`
	Asker
	ToolName     string     `json:"tool_name"`
	BackgroundOf string     `json:"background_of,omitempty"` // parent of a background call
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

// Instant formats a time for the wire. The zero time becomes "".
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return date(t)
}

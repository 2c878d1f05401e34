package message

import "time"

// BackgroundPrefix begins the ids of background calls. Requests may not use it,
// so that such an id never names anything else.
const BackgroundPrefix = "background-"

// The causes for which toold stops a call.
const (
	ByTimeout    = "timeout"     // it ran longer than its timeout
	ByCancel     = "cancel"      // a client sent cancel
	ByClientGone = "client_gone" // its client disconnected for longer than limits.linger
	ByShutdown   = "shutdown"    // the daemon stopped
)

// Leftover is a process that outlived its command and was killed.
type Leftover struct {
	PID     int    `json:"pid"` // in the pid namespace of the command
	Command string `json:"command"`
}

// Background names the call as which a command continues after the return of the
// call that started it.
type Background struct {
	CallID    string `json:"tool_call_id"` // for get_output, tool_input, cancel and list_calls
	PID       int    `json:"pid"`
	StartedAt string `json:"started_at"` // RFC 3339
}

// BackgroundEnded reports the end of a background call. It lacks the fields by
// which readers of the family recognise a return.
type BackgroundEnded struct {
	MessageType  string     `json:"message_type"` // "background_ended"
	ID           string     `json:"id"`           // of the recorded return
	Date         string     `json:"date"`
	CallID       string     `json:"tool_call_id"`  // the background call
	BackgroundOf string     `json:"background_of"` // the call that started it
	ToolName     string     `json:"tool_name"`
	Outcome      string     `json:"outcome"` // "success" or "error"
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

// BackgroundEnded reports r, the return of the background call that the call of
// started.
func (r ToolReturn) BackgroundEnded(of string) BackgroundEnded {
	return BackgroundEnded{
		MessageType: "background_ended", ID: r.ID, Date: r.Date, CallID: r.CallID, BackgroundOf: of, ToolName: r.ToolName,
		Outcome: r.Status, Result: r.Result, ExitCode: r.ExitCode, Signal: r.Signal, ErrorType: r.ErrorType, Cause: r.Cause,
		DurationMS: r.DurationMS, StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Leftovers: r.Leftovers, Denials: r.Denials,
	}
}

// ToolQueued reports that a call waits for others to end. It is sent again, at
// most once a second, when the position changes.
type ToolQueued struct {
	MessageType string `json:"message_type"` // "tool_queued"
	CallID      string `json:"tool_call_id"`
	Position    int    `json:"position"` // 1 is next
}

// accepted answers a request over HTTP whose calls have not ended in time.
type accepted struct {
	MessageType string   `json:"message_type"` // "accepted"
	CallIDs     []string `json:"tool_call_ids"`
	Message     string   `json:"message"` // what to do next
}

// Accepted answers a request over HTTP while not all of the calls with these ids have ended.
func Accepted(ids ...string) any {
	return accepted{"accepted", ids, "not every call has ended; ask with GET /v1/calls/ID, or send the same request again: no id runs twice. A call that no one asks for is cancelled after limits.linger"}
}

type calls struct {
	MessageType string     `json:"message_type"` // "calls"
	RequestID   string     `json:"request_id"`
	Calls       []CallInfo `json:"calls"`
}

// Answer returns the answer to l.
func (l *ListCalls) Answer(list []CallInfo) any { return calls{"calls", l.RequestID, list} }

// The states of a call.
const (
	CallReceived = "received" // being judged
	CallWaiting  = "waiting"  // for approval
	CallQueued   = "queued"   // for other calls to end
	CallRunning  = "running"
	CallEnded    = "ended"
)

// CallInfo is one call in a list.
type CallInfo struct {
	CallID string `json:"tool_call_id"`
	Asker
	ToolName     string     `json:"tool_name"`
	BackgroundOf string     `json:"background_of,omitempty"` // of a background call: the call that started it
	State        string     `json:"state"`
	Position     int        `json:"position,omitempty"` // in the queue
	Preview      string     `json:"preview,omitempty"`  // first part, of calls that have not ended
	PID          int        `json:"pid,omitempty"`
	ReceivedAt   string     `json:"received_at"`
	StartedAt    string     `json:"started_at,omitempty"`
	EndedAt      string     `json:"ended_at,omitempty"`
	Outcome      string     `json:"outcome,omitempty"` // of an ended call: "success" or "error"
	ErrorType    *ErrorType `json:"error_type,omitempty"`
	ExitCode     *int       `json:"exit_code,omitempty"`
	Signal       string     `json:"signal,omitempty"`
	Denials      int        `json:"denials,omitempty"` // how many, of an ended call
	StdoutBytes  int64      `json:"stdout_bytes"`
	StderrBytes  int64      `json:"stderr_bytes"`
}

// Instant formats a time as in frames; the zero time is empty.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return date(t)
}

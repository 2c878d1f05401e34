package message

import (
	"fmt"
	"strings"
	"time"
)

// ReturnOptions are the parts of a return. The zero value makes a return with
// status "error".
type ReturnOptions struct {
	CallID   string
	ToolName string    // as asked
	ID       string    // empty: a new one
	OTID     string    // empty: a new one
	Time     time.Time // zero: now
	RunID    string
	StepID   string
	SeqID    int64

	Success     bool // counts only without ErrorType, Signal, TimedOut, Cancelled and a non-zero ExitCode
	Result      string
	Stdout      string // bytes that are not UTF-8 become U+FFFD
	Stderr      string
	ErrorType   ErrorType // empty: none
	ExitCode    *int
	Signal      string
	TimedOut    bool
	Cancelled   bool
	Duration    time.Duration
	Truncated   bool
	StdoutBytes int64
	StderrBytes int64
	Terminal    string
	Order       string // "exact" or "arrival"; empty when no command ran
	Sandbox     *Sandbox
	Decision    *Decision
	Diff        string
	Leftovers   []Leftover
	Denials     []Denial // of which the first maxDenials are sent
	Cause       string   // empty: toold did not stop it
	Background  *Background
	File        *File
	Files       []File
}

// Return returns the return of a call, with each value in every field where readers of
// the family look for it.
func (o ReturnOptions) Return() ToolReturn {
	result := strings.ToValidUTF8(o.Result, "\ufffd")
	r := ToolReturn{
		MessageType: "tool_return_message", ID: o.ID, Date: date(o.Time), CallID: o.CallID,
		ToolName: o.ToolName, Name: o.ToolName, Status: o.status(), Result: result, ToolReturn: result,
		Stdout: lines(o.Stdout), Stderr: lines(o.Stderr), OTID: o.OTID,
		RunID: optional(o.RunID), StepID: optional(o.StepID), SeqID: o.SeqID,
		ExitCode: o.ExitCode, Signal: optional(o.Signal), TimedOut: o.TimedOut, Cancelled: o.Cancelled,
		DurationMS: o.Duration.Milliseconds(), Truncated: o.Truncated,
		StdoutBytes: o.StdoutBytes, StderrBytes: o.StderrBytes, Terminal: optional(o.Terminal), Order: o.Order,
		Sandbox: o.Sandbox, Decision: o.Decision, ErrorType: optional(o.ErrorType), Diff: optional(o.Diff),
		Leftovers: o.Leftovers, Denials: o.Denials[:min(len(o.Denials), maxDenials)], Cause: optional(o.Cause), Background: o.Background, File: o.File, Files: o.Files,
	}
	if r.ID == "" {
		r.ID = NewID("message")
	}
	if r.OTID == "" {
		r.OTID = NewID("otid")
	}
	r.mirror()
	return r
}

func (r *ToolReturn) mirror() {
	r.Result = r.ToolReturn
	r.ToolReturns = []returnItem{{
		Type: "tool", CallID: r.CallID, Status: r.Status, ToolReturn: r.ToolReturn, Stdout: r.Stdout, Stderr: r.Stderr,
	}}
}

func (o ReturnOptions) status() string {
	failed := o.ErrorType != "" || o.Signal != "" || o.TimedOut || o.Cancelled || o.ExitCode != nil && *o.ExitCode != 0
	if o.Success && !failed {
		return "success"
	}
	return "error"
}

func date(t time.Time) string {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// lines returns output as the family's array: empty, never null, or of one
// string, since splitting would lose whether the last line is complete.
func lines(s string) []string {
	if s == "" {
		return []string{}
	}
	return []string{strings.ToValidUTF8(s, "\ufffd")}
}

// optional returns nil, JSON's null, for an empty string.
func optional[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

// chatReturn is a return in the chat form. It has no status, so Content contains
// the failure.
type chatReturn struct {
	Role    string `json:"role"` // "tool"
	CallID  string `json:"tool_call_id"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

func chatAnswer(_ *Request, returns []ToolReturn) any {
	r := returns[0]
	return chatReturn{"tool", r.CallID, r.ToolName, r.chatContent()}
}

func (r ToolReturn) chatContent() string {
	switch {
	case r.Status == "success" || strings.HasPrefix(r.Result, "Error"):
		return r.Result
	case strings.HasPrefix(r.Result, "Exit code"):
		return "Error: " + r.Result
	}
	return strings.TrimSuffix("Error: "+r.failure()+"\n"+r.Result, "\n")
}

func (r ToolReturn) failure() string {
	switch {
	case r.ErrorType != nil:
		return string(*r.ErrorType)
	case r.Signal != nil:
		return "killed by signal " + *r.Signal
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *r.ExitCode)
	}
	return "the call failed"
}

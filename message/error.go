package message

import (
	"cmp"
	"fmt"

	"github.com/toold/toold/internal/strict"
)

// ErrorType says why a frame or call failed. The set is closed.
type ErrorType string

// Types of an error_message. The last two also occur in returns.
const (
	InvalidFrame       ErrorType = "invalid_frame"
	UnsupportedFrame   ErrorType = "unsupported_frame"
	UnknownMessageType ErrorType = "unknown_message_type"
	MissingToolCallID  ErrorType = "missing_tool_call_id"
	DuplicateToolCall  ErrorType = "duplicate_tool_call"
	ApprovalNotPending ErrorType = "approval_not_pending"
	NotAuthorized      ErrorType = "not_authorized"
	NotFound           ErrorType = "not_found"
	NotRunning         ErrorType = "not_running"
	InvalidArguments   ErrorType = "invalid_arguments"
	InternalError      ErrorType = "internal_error"
)

// Types of a failed return.
const (
	UnknownTool        ErrorType = "unknown_tool"
	Denied             ErrorType = "denied"
	ApprovalTimeout    ErrorType = "approval_timeout"
	Timeout            ErrorType = "timeout"
	Cancelled          ErrorType = "cancelled"
	InputNeeded        ErrorType = "input_needed"
	SandboxUnavailable ErrorType = "sandbox_unavailable"
	ProtectedPath      ErrorType = "protected_path"
	TooManyCalls       ErrorType = "too_many_calls"
	Shutdown           ErrorType = "shutdown"
	UnknownAfterCrash  ErrorType = "unknown_after_crash"

	NotStartedAfterCrash ErrorType = "not_started_after_crash"
)

func errorTypes() []ErrorType {
	return []ErrorType{
		InvalidFrame, UnsupportedFrame, UnknownMessageType, MissingToolCallID, DuplicateToolCall, ApprovalNotPending,
		NotAuthorized, NotFound, NotRunning, InvalidArguments, InternalError, UnknownTool, Denied, ApprovalTimeout,
		Timeout, Cancelled, InputNeeded, SandboxUnavailable, ProtectedPath, TooManyCalls, Shutdown, UnknownAfterCrash, NotStartedAfterCrash,
	}
}

// Error is an error_message, the answer to a frame that cannot be processed.
type Error struct {
	MessageType string    `json:"message_type"`
	Type        ErrorType `json:"error_type"`
	Message     string    `json:"message"` // one sentence: the fault and its remedy
	RequestID   string    `json:"request_id,omitempty"`
	CallID      string    `json:"tool_call_id,omitempty"`
	AgentID     string    `json:"agent_id,omitempty"`
}

// Errorf returns a new Error.
func (t ErrorType) Errorf(format string, args ...any) *Error {
	return &Error{MessageType: "error_message", Type: t, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Type) + ": " + e.Message }

// Refer copies request_id, tool_call_id and agent_id of the answered frame to empty fields of e. It stops at the first
// syntax error in frame.
func (e *Error) Refer(frame []byte) {
	i := strict.SkipSpace(frame, 0)
	if i == len(frame) || frame[i] != '{' {
		return
	}
	for i++; ; i++ { // past the brace or a comma
		start := strict.SkipSpace(frame, i)
		if start == len(frame) || frame[start] != '"' {
			return
		}
		end := strict.SkipString(frame, start)
		key := identOf(frame[start:end])
		colon := strict.SkipSpace(frame, end)
		if colon == len(frame) || frame[colon] != ':' {
			return
		}
		start = strict.SkipSpace(frame, colon+1)
		end = strict.SkipValue(frame, start)
		switch key {
		case "request_id":
			e.RequestID = cmp.Or(e.RequestID, identOf(frame[start:end]))
		case "tool_call_id":
			e.CallID = cmp.Or(e.CallID, identOf(frame[start:end]))
		case "agent_id":
			e.AgentID = cmp.Or(e.AgentID, identOf(frame[start:end]))
		}
		if i = strict.SkipSpace(frame, end); i == len(frame) || frame[i] != ',' {
			return
		}
	}
}

// identOf returns the identifier in raw, or "" if raw is not a JSON string with one.
func identOf(raw []byte) string {
	if !strict.Valid(raw, 0) {
		return ""
	}
	if s, err := unquote(raw); err == nil && IsID(s) {
		return s
	}
	return ""
}

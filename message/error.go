package message

import "fmt"

// ErrorType is the closed set of reasons for which a frame is answered by an
// error_message or a call by an erroneous return.
type ErrorType string

// Types of an error_message: the frame could not be acted on.
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
	InvalidArguments   ErrorType = "invalid_arguments" // also of a return
	InternalError      ErrorType = "internal_error"    // also of a return
)

// Types of a tool_return_message with status "error".
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
)

// errorTypes returns all of them.
func errorTypes() []ErrorType {
	return []ErrorType{
		InvalidFrame, UnsupportedFrame, UnknownMessageType, MissingToolCallID, DuplicateToolCall, ApprovalNotPending,
		NotAuthorized, NotFound, NotRunning, InvalidArguments, InternalError, UnknownTool, Denied, ApprovalTimeout,
		Timeout, Cancelled, InputNeeded, SandboxUnavailable, ProtectedPath, TooManyCalls, Shutdown, UnknownAfterCrash,
	}
}

// Error is a frame that cannot be acted on. It is answered, never dropped.
type Error struct {
	MessageType string    `json:"message_type"` // "error_message"
	Type        ErrorType `json:"error_type"`
	Message     string    `json:"message"` // one sentence: what is wrong and what to do
	Detail      string    `json:"detail,omitempty"`
	RequestID   string    `json:"request_id,omitempty"`
	CallID      string    `json:"tool_call_id,omitempty"`
}

// Errorf makes an Error of a type.
func Errorf(t ErrorType, format string, args ...any) *Error {
	return &Error{MessageType: "error_message", Type: t, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Type) + ": " + e.Message }

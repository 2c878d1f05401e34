package message

import "time"

// WaitingForInput tells that a program of a running call waits for input, or
// that it goes on. The kernel's state decides, never a text.
type WaitingForInput struct {
	MessageType string `json:"message_type"` // "waiting_for_input"
	CallID      string `json:"tool_call_id"`
	Waiting     bool   `json:"waiting"`         // false: it goes on
	Kind        string `json:"kind"`            // "line", "password", or "tui": single keys
	Since       string `json:"since,omitempty"` // RFC 3339
	PID         int    `json:"pid"`             // as the call sees it
	Command     string `json:"command"`         // what waits
}

// NewWaitingForInput makes the message.
func NewWaitingForInput(callID string, waiting bool, kind string, since time.Time, pid int, command string) WaitingForInput {
	return WaitingForInput{
		MessageType: "waiting_for_input", CallID: callID, Waiting: waiting, Kind: kind,
		Since: since.UTC().Format(time.RFC3339Nano), PID: pid, Command: command,
	}
}

// InputTaken answers a tool_input that carries a request_id: its data was given to
// the command's terminal or pipe.
type InputTaken struct {
	MessageType string `json:"message_type"` // "input_taken"
	RequestID   string `json:"request_id"`
	CallID      string `json:"tool_call_id"`
}

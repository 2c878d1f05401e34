package message

import "encoding/json"

// RecordedAnswer is an answer to a question about a call as list_messages shows it: an
// approval_response_message of the family, and what toold adds.
type RecordedAnswer struct {
	OTID           string             `json:"otid,omitempty"`
	RunID          string             `json:"run_id,omitempty"`
	StepID         string             `json:"step_id,omitempty"`
	AgentID        string             `json:"agent_id,omitempty"`
	ConversationID string             `json:"conversation_id,omitempty"`
	Approvals      []RecordedApproval `json:"approvals"`
	Approve        bool               `json:"approve"`
	ApprovalID     string             `json:"approval_request_id"`
	Reason         string             `json:"reason,omitempty"`
	Approver       string             `json:"approver"`              // whose token answered
	Remember       string             `json:"remember,omitempty"`    // what the answer also counts for: "conversation", "command", "prefix" or "rule"
	Changes        []string           `json:"changes,omitempty"`     // that it made in the policy file
	NotWritten     string             `json:"not_written,omitempty"` // why it made none
	Beforehand     bool               `json:"beforehand,omitempty"`  // it was given before the question, which nobody has read
}

// RecordedApproval is the answer for one call.
type RecordedApproval struct {
	Type    string    `json:"type"` // "approval"
	CallID  string    `json:"tool_call_id"`
	Approve bool      `json:"approve"`
	Reason  string    `json:"reason,omitempty"`
	Widen   *Widening `json:"widen,omitempty"` // what the call got besides

	Arguments json.RawMessage `json:"arguments,omitempty"` // that the call ran with instead of its own
}

package client

import (
	"context"
	"encoding/json"

	"github.com/toold/toold/message"
)

// ListApprovals returns the pending approval requests. It needs the role approver, observer or admin.
func (c *Client) ListApprovals(ctx context.Context) ([]message.ApprovalRequest, error) {
	q := message.ListApprovals{MessageType: "list_approvals"}
	answer, err := request[struct{ Approvals []message.ApprovalRequest }](ctx, c, &q, &q.RequestID)
	return answer.Approvals, err
}

// ApprovalEvents are callbacks of Approvals, which calls them one after another; either may be nil. They may use the
// Client and block: 256 frames are buffered before the connection stalls.
type ApprovalEvents struct {
	Requested func(message.ApprovalRequest)
	Resolved  func(message.ApprovalResolved)
}

// Approvals reports each pending approval request once, existing ones first, until ctx or the connection ends. It
// returns the cause. It needs the role approver or admin.
func (c *Client) Approvals(ctx context.Context, events ApprovalEvents) error {
	live := c.addWaiter(func(f *frame) bool { return f.Type == "approval_request_message" || f.Type == "approval_resolved" })
	defer c.removeWaiter(live)
	seen := map[string]bool{}
	requested := func(r message.ApprovalRequest) {
		if !seen[r.ID] && events.Requested != nil {
			events.Requested(r)
		}
		seen[r.ID] = true
	}
	resolved := func(r message.ApprovalResolved) {
		delete(seen, r.ID)
		if events.Resolved != nil {
			events.Resolved(r)
		}
	}
	waiting, err := c.ListApprovals(ctx)
	for _, r := range waiting {
		requested(r)
	}
	for err == nil {
		var f *frame
		if f, err = c.next(ctx, live); err != nil {
			break
		}
		if f.Type == "approval_request_message" {
			err = handle(f, requested)
		} else {
			err = handle(f, resolved)
		}
	}
	return err
}

// Decision decides on an approval request, named by its own id or by that of its call.
type Decision struct {
	CallID     string
	ApprovalID string // used if CallID is empty
	Approve    bool   // the zero value denies
	Reason     string // for the model
	Remember   string // once (default), conversation, command, prefix or rule
	Pattern    string // of the rule, if Remember is rule

	Widen message.Widening // addition to the sandbox of the call, with Approve only

	Arguments json.RawMessage // replace those of the call, with Approve only

	Beforehand bool // sent before the approval request
}

// A response is the frame for a Decision.
type response struct {
	MessageType string                   `json:"message_type"`
	RequestID   string                   `json:"request_id"`
	Remember    string                   `json:"remember,omitempty"`
	Pattern     string                   `json:"pattern,omitempty"`
	Beforehand  bool                     `json:"beforehand,omitempty"`
	Approvals   []message.ApprovalAnswer `json:"approvals,omitempty"`

	*message.ApprovalAnswer
}

func (d Decision) frame() *response {
	r := &response{MessageType: "approval_response_message", Remember: d.Remember, Pattern: d.Pattern, Beforehand: d.Beforehand}
	answer := message.ApprovalAnswer{Approve: d.Approve, Reason: d.Reason, Widen: d.Widen, Arguments: d.Arguments}
	if d.CallID == "" {
		answer.ApprovalID, r.ApprovalAnswer = d.ApprovalID, &answer
	} else {
		answer.Type, answer.CallID = "approval", d.CallID
		r.Approvals = []message.ApprovalAnswer{answer}
	}
	return r
}

// Decide sends a decision and waits until the daemon accepts it. An error may be a *message.Error of the type
// approval_not_pending (too late), not_authorized, invalid_arguments (beyond the limits; the call still waits) or
// internal_error (the message says whether the decision counts).
func (c *Client) Decide(ctx context.Context, d Decision) (message.ApprovalResolved, error) {
	frame := d.frame()
	return request[message.ApprovalResolved](ctx, c, frame, &frame.RequestID)
}

package client

import (
	"context"
	"encoding/json"

	"github.com/toold/toold/message"
)

// ListApprovals returns the calls that wait for a person. The token needs the
// role approver or observer.
func (c *Client) ListApprovals(ctx context.Context) ([]message.ApprovalRequest, error) {
	answer, err := request[message.Approvals](ctx, c, fields{"message_type": "list_approvals"})
	return answer.Approvals, err
}

// ApprovalEvents are called one after the other by Approvals; either may be
// nil. They may use the Client and may wait for a person: up to 256 frames wait
// for them before the connection does.
type ApprovalEvents struct {
	Requested func(message.ApprovalRequest)
	Resolved  func(message.ApprovalResolved)
}

// Approvals tells of every call that waits for a person, those that wait
// already first, each once, until ctx ends or the connection does; it returns
// why. The token needs the role approver.
func (c *Client) Approvals(ctx context.Context, events ApprovalEvents) error {
	live := c.wait(func(f *frame) bool { return f.Type == "approval_request_message" || f.Type == "approval_resolved" })
	defer c.leave(live)
	told := map[string]bool{}
	requested := func(r message.ApprovalRequest) {
		if !told[r.ID] && events.Requested != nil {
			events.Requested(r)
		}
		told[r.ID] = true
	}
	resolved := func(r message.ApprovalResolved) {
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

// Decision answers one waiting approval, named by its own id or by its call's.
type Decision struct {
	CallID     string
	ApprovalID string // counts when CallID is empty
	Approve    bool   // the zero value denies
	Reason     string // told to the model
	Remember   string // "once" (also when empty), "conversation", "command", "prefix" or "rule"
	Pattern    string // of the rule, when Remember is "rule"

	Widen message.Widening // what a yes adds to the sandbox of this one call

	Arguments json.RawMessage // to run the call with instead of its own

	Beforehand bool // it was given before the question, which nobody has read
}

func (d Decision) fields() fields {
	f := fields{"message_type": "approval_response_message", "remember": d.Remember}
	answer := f
	if d.CallID != "" {
		answer = fields{"type": "approval", "tool_call_id": d.CallID}
		f["approvals"] = []fields{answer}
	} else {
		f["approval_request_id"] = d.ApprovalID
	}
	if d.Pattern != "" {
		f["pattern"] = d.Pattern
	}
	if d.Beforehand {
		f["beforehand"] = true
	}
	answer["approve"], answer["reason"] = d.Approve, d.Reason
	if w := d.Widen.Recorded(); w != nil {
		answer["widen"] = w
	}
	if len(d.Arguments) > 0 {
		answer["arguments"] = d.Arguments
	}
	return f
}

// answers reports whether a frame says what became of the decision. An error
// that names nothing is about a frame that could not be acted on, and decisions
// under an approval's own id are the only frames of a Client that can get one.
func (d Decision) answers(f *frame) bool {
	mine := d.CallID != "" && f.CallID == d.CallID ||
		d.CallID == "" && (f.ID == d.ApprovalID || f.CallID == d.ApprovalID)
	switch f.Type {
	case "approval_resolved":
		return mine
	case "error_message":
		return mine || f.CallID == "" && f.RequestID == ""
	}
	return false
}

// is reports whether what was decided is what this decision says.
func (d Decision) is(r message.ApprovalResolved) bool {
	var widened message.Widening
	if r.Widened != nil {
		widened = *r.Widened
	}
	return r.Approve == d.Approve && widened == d.Widen
}

// Decide sends a decision and returns when the daemon has taken it. A
// *message.Error of the type approval_not_pending means that it came too late,
// not_authorized that this token may not decide, invalid_arguments that it widens
// what it may not: the call waits on then.
func (c *Client) Decide(ctx context.Context, d Decision) (message.ApprovalResolved, error) {
	var r message.ApprovalResolved
	w := c.wait(d.answers)
	defer c.leave(w)
	if err := c.send(d.fields()); err != nil {
		return r, err
	}
	for {
		f, err := c.next(ctx, w)
		if err != nil {
			return r, err
		}
		if f.Type == "error_message" {
			return r, f.asError()
		}
		if err := f.decode(&r); err != nil || d.is(r) {
			return r, err
		}
		// Somebody was faster and decided otherwise; the error follows.
	}
}

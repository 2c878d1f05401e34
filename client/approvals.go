package client

import (
	"context"

	"github.com/toold/toold/message"
)

// Approvals returns the calls that wait for a person. The token needs the role
// approver or observer.
func (c *Client) Approvals(ctx context.Context) ([]message.ApprovalRequest, error) {
	answer, err := request[message.Approvals](ctx, c, fields{"message_type": "list_approvals"})
	return answer.Approvals, err
}

// OnApproval calls take for each call that waits for a person: for those that
// wait already, then for new ones, each once and one after the other, until the
// connection ends. It returns at once. The callback may use the Client, and may
// wait for a person: Close does not wait for it. The token needs the role
// approver.
func (c *Client) OnApproval(take func(message.ApprovalRequest)) {
	live := c.wait(func(f *frame) bool { return f.Type == "approval_request_message" })
	// Ends with the connection, or after the callback that runs then.
	go func() {
		defer c.leave(live)
		ctx := context.Background() // the connection's end ends every wait
		told := map[string]bool{}
		once := func(r message.ApprovalRequest) {
			if !told[r.ID] {
				told[r.ID] = true
				take(r)
			}
		}
		waiting, err := c.Approvals(ctx)
		for _, r := range waiting {
			once(r)
		}
		for err == nil {
			var f *frame
			if f, err = c.next(ctx, live); err == nil {
				err = handle(f, once)
			}
		}
	}()
}

// Decision answers one waiting approval.
type Decision struct {
	ApprovalID string // of the approval or, where it is clear, of its call
	Approve    bool   // the zero value denies
	Reason     string // told to the model
	Remember   string // "once" (also when empty), "session" or "rule"
}

// Decide sends a decision and returns when the daemon has taken it. A
// *message.Error of the type approval_not_pending means that it came too late,
// not_authorized that this token may not decide.
func (c *Client) Decide(ctx context.Context, d Decision) error {
	w := c.wait(func(f *frame) bool {
		mine := f.ID == d.ApprovalID || f.CallID == d.ApprovalID
		return f.Type == "approval_resolved" && mine || f.Type == "error_message" && (mine || f.isAnonymous())
	})
	defer c.leave(w)
	err := c.send(fields{
		"message_type": "approval_response_message", "approval_request_id": d.ApprovalID,
		"approve": d.Approve, "reason": d.Reason, "remember": d.Remember,
	})
	for err == nil {
		var f *frame
		if f, err = c.next(ctx, w); err != nil {
			break
		}
		if f.Type == "error_message" {
			return f.asError()
		}
		var r message.ApprovalResolved
		if err = f.decode(&r); err == nil && r.Approve == d.Approve {
			return nil
		}
		// Somebody was faster and decided otherwise; the error follows.
	}
	return err
}

// isAnonymous reports whether an error names nothing. Such a one is about a
// frame that could not be acted on, and a Client sends no other frames that
// can fail like that than decisions under an approval's own id.
func (f *frame) isAnonymous() bool { return f.CallID == "" && f.RequestID == "" }

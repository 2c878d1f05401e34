package dispatch

import (
	"context"
	"encoding/json"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// takeAnswer writes the rule that an answer wants, and journals each answer to a question
// about a call as a message, before the call goes on. That needs no sync: the intent to
// run, which has one, follows.
func (d *Dispatcher) takeAnswer(q question) func(approval.Verdict) error {
	c := q.call
	return func(v approval.Verdict) error {
		changes, unwritten := d.writeRule(q, v)
		why := ""
		if unwritten != nil {
			why = unwritten.Error()
		}
		from := c.req.Origin
		from.ID = "" // the journal gives it one
		body, err := message.Encode(recordedAnswer{
			Origin: from,
			Approvals: []message.ApprovalAnswer{{
				Type: "approval", CallID: c.ID, Approve: v.Approve, Reason: v.Reason, Widen: message.Widening(v.Widen), Arguments: json.RawMessage(v.Arguments),
			}},
			Approve: v.Approve, ApprovalID: q.id, Remember: v.Remember, Changes: changes, NotWritten: why, Reason: v.Reason, Approver: v.By, Beforehand: v.Before,
		})
		if err == nil {
			m := c.message("approval_response_message", journal.In, body)
			m.OTID = c.req.OTID
			_, err = d.opt.Journal.Append(context.Background(), m)
		}
		if err != nil {
			d.opt.Log.Error("cannot journal an answer", zap.String("call", c.ID), zap.Error(err))
		}
		return unwritten
	}
}

// recordedAnswer is an answer to an approval as list_messages shows it: the
// family's approval_response_message with toold's own fields.
type recordedAnswer struct {
	message.Origin
	Approvals  []message.ApprovalAnswer `json:"approvals"`
	Approve    bool                     `json:"approve"`
	ApprovalID string                   `json:"approval_request_id"`
	Reason     string                   `json:"reason,omitempty"`
	Approver   string                   `json:"approver"`              // whose token answered
	Remember   string                   `json:"remember,omitempty"`    // scope of the answer: "conversation", "command", "prefix" or "rule"
	Changes    []string                 `json:"changes,omitempty"`     // made in the policy file
	NotWritten string                   `json:"not_written,omitempty"` // why the policy file was not changed
	Beforehand bool                     `json:"beforehand,omitempty"`  // sent before the question, which no one has read
}

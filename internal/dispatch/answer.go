package dispatch

import (
	"context"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// recordAnswer journals each answer to a question about a call as a message, before the
// call goes on. It needs no sync: the intent to run, which has one, follows.
func (d *Dispatcher) recordAnswer(c *Call, approvalID string) func(approval.Verdict) {
	return func(v approval.Verdict) {
		body, err := message.Encode(message.RecordedAnswer{
			OTID: c.req.OTID, RunID: c.req.RunID, StepID: c.req.StepID, AgentID: c.req.AgentID, ConversationID: c.req.ConversationID,
			Approvals: []message.RecordedApproval{{
				Type: "approval", CallID: c.ID, Approve: v.Approve, Reason: v.Reason, Widen: message.Widening(v.Widen).Recorded(),
			}},
			Approve: v.Approve, ApprovalID: approvalID, Reason: v.Reason, Approver: v.By, Beforehand: v.Before,
		})
		if err == nil {
			_, err = d.opt.Journal.Append(context.Background(), journal.Message{
				Type: "approval_response_message", Direction: journal.In, Client: c.client,
				AgentID: c.req.AgentID, ConversationID: c.req.ConversationID, RunID: c.req.RunID, StepID: c.req.StepID,
				OTID: c.req.OTID, GroupID: c.req.GroupID, SenderID: c.req.SenderID, CallID: c.ID, Body: body,
			})
		}
		if err != nil {
			d.opt.Log.Error("cannot journal an answer", zap.String("call", c.ID), zap.Error(err))
		}
	}
}

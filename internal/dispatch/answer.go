package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// takeAnswer returns a function that writes the rule for an answer and journals the answer. It does not sync, because
// the intent that follows does.
func (d *Dispatcher) takeAnswer(q question) func(approval.Verdict) error {
	c := q.call
	return func(v approval.Verdict) error {
		changes, unwritten := d.writeRule(q, v)
		why := ""
		if unwritten != nil {
			why = unwritten.Error()
		}
		from := c.req.Origin
		from.ID = "" // the journal assigns one
		body, err := message.Encode(recordedAnswer{
			Origin: from,
			Approvals: []message.ApprovalAnswer{{
				Type: "approval", CallID: c.ID, Approve: v.Approve, Reason: v.Reason, Widen: message.Widening(v.Escalation), Arguments: json.RawMessage(v.Arguments),
			}},
			Approve: v.Approve, ApprovalID: q.id, Remember: v.Remember, Changes: changes, NotWritten: why, Reason: v.Reason, Approver: v.By, Beforehand: v.Before,
		})
		if err == nil {
			m := c.message("approval_response_message", journal.In, body)
			m.OTID = c.req.OTID
			_, err = d.opt.Journal.Append(m)
		}
		if err != nil {
			d.opt.Log.Error("cannot journal an answer", zap.String("call", c.ID), zap.Error(err))
		}
		return unwritten
	}
}

// recordedAnswer is a journaled answer: an approval_response_message with additional fields.
type recordedAnswer struct {
	message.Origin
	Approvals  []message.ApprovalAnswer `json:"approvals"`
	Approve    bool                     `json:"approve"`
	ApprovalID string                   `json:"approval_request_id"`
	Reason     string                   `json:"reason,omitempty"`
	Approver   string                   `json:"approver"` // token name
	Remember   string                   `json:"remember,omitempty"`
	Changes    []string                 `json:"changes,omitempty"`     // made in the policy file
	NotWritten string                   `json:"not_written,omitempty"` // why the policy file did not change
	Beforehand bool                     `json:"beforehand,omitempty"`  // sent before the approval request
}

// editedCall builds the call with a person's arguments. It returns nil if there are none, and an error if the edited
// call must not run.
func (d *Dispatcher) editedCall(q question, v approval.Verdict) (tools.Invocation, error) {
	if v.Arguments == "" {
		return nil, nil
	}
	asked := q.call.asked
	asked.Arguments = json.RawMessage(v.Arguments)
	inv, refused := d.build(context.Background(), q.call.workspace, asked)
	switch {
	case !v.Approve:
		return nil, errors.New("an answer of no changes nothing")
	case refused != nil:
		return nil, errors.New(refused.text)
	case q.call.elsewhere:
		return nil, errors.New("another program carries this call out as it is; refuse it and say what to do")
	case inv.Traits().Background || q.inv.Traits().Background:
		return nil, errors.New("a call that runs in the background is not edited; refuse it and say what to run")
	}
	if away := d.leads(q.call, asked); away != nil {
		return nil, errors.New(away.text)
	}
	if now := d.rulesFor(q.call).policy.Decide(inv.Effects()); now.Action == policy.Deny {
		return nil, errors.New("the edited call is denied by rule " + now.Rule + ": " + now.Reason)
	}
	return inv, nil
}

// leads returns a refusal if edited arguments lead out of the call's workspace, whose policy and sandbox apply.
func (d *Dispatcher) leads(c *Call, edited message.ToolCall) *refusal {
	as := &Call{asked: edited, dir: c.dir, near: c.near}
	refused := d.enter(context.Background(), as)
	defer as.leaveWorkspace()
	if refused == nil && as.workspace.opt.Root != c.workspace.opt.Root {
		return &refusal{message.InvalidArguments, fmt.Sprintf("the edited call is one in the workspace %s, and this one is in %s: stay in it, or refuse the call and say what to do", as.workspace.opt.Root, c.workspace.opt.Root)}
	}
	return refused
}

// note tells the model what a person changed for this call, and that a wider sandbox applies to this call only.
func (c *Call) note() string {
	var lines []string
	if c.edited != nil {
		lines = append(lines, "A person changed this call before it ran. What ran is: "+c.edited.Text())
	}
	if w := c.added(); w != nil {
		lines = append(lines, "A person has widened the sandbox of this one call: "+w.String()+". Other calls are confined as before.")
	}
	return strings.Join(lines, "\n")
}

func escalationLimits(q question) escalation.Limits {
	if c, ok := q.inv.(tools.Confined); ok {
		return c.EscalationLimits(q.call.workspace.opt.Escalation)
	}
	return escalation.Limits{}
}

func (c *Call) base() sandbox.Profile {
	return c.workspace.opt.Profile.AtMost(c.profile).Within(c.limit)
}

// checkAnswer returns a function that rejects invalid escalations and edits; the call then still awaits approval.
func (d *Dispatcher) checkAnswer(q question) func(approval.Verdict) error {
	base := q.call.base()
	return func(v approval.Verdict) error {
		if _, err := d.offered(q, v); err != nil {
			return err
		}
		if _, err := d.editedCall(q, v); err != nil {
			return err
		}
		g, err := escalate(q, base, v)
		g.Close() // approved creates it again for the accepted answer
		return err
	}
}

func escalate(q question, base sandbox.Profile, v approval.Verdict) (*escalation.Escalation, error) {
	if !v.Approve && v.Escalation != (approval.Escalation{}) {
		return nil, errors.New("an answer of no widens nothing")
	}
	return escalationLimits(q).Check(base, escalation.Words(v.Escalation))
}

func onlyYesOrNo(v approval.Verdict) error {
	remembers := v.Remember != "" && v.Remember != onceOnly
	if v.Escalation != (approval.Escalation{}) || v.Arguments != "" || remembers {
		return errors.New("the call runs already, and this question is about one host: answer it with yes or no")
	}
	return nil
}

func (c *Call) added() *message.Widening { return message.Widening(c.escalation.Words()).Recorded() }

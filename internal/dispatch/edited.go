package dispatch

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// editedCall builds the call that a person wants to run in the place of the one that was
// asked for; nil when that is the same. The error says why it cannot run.
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
	if now := d.rulesFor(q.call).policy.Decide(inv.Effects()); now.Action == policy.Deny {
		return nil, errors.New("the edited call is denied by rule " + now.Rule + ": " + now.Reason)
	}
	return inv, nil
}

func (c *Call) altered(r tools.Result) tools.Result {
	if c.edited != nil {
		r.Text = "A person changed this call before it ran. What ran is: " + c.edited.Text() + "\n" + r.Text
	}
	return r
}

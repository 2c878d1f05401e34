package dispatch

import (
	"context"
	"time"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// approvalRequest renders a call for the people who decide on it.
func approvalRequest(c *Call, inv tools.Invocation, effects []policy.Effect, said *message.Decision, expires time.Time) message.ApprovalRequest {
	preview := inv.Preview()
	return message.ApprovalRequest{
		MessageType: "approval_request_message",
		ID:          message.NewID("approval"),
		Date:        time.Now().UTC().Format(time.RFC3339Nano),
		CallID:      c.ID,
		Asker:       c.asker(),
		ToolCall: message.ApprovalCall{
			ToolCallID: c.ID, ToolName: c.asked.Name, Name: c.asked.Name,
			Arguments: shownArguments(c.asked.Arguments),
		},
		Rule: said.Rule, Source: said.Source, Reason: said.Reason,
		Preview:     message.Preview{Text: preview.Text, Diff: preview.Diff},
		Effects:     shownEffects(inv, effects),
		ExpiresAt:   expires.UTC().Format(time.RFC3339Nano),
		Suggestions: []string{},
	}
}

// shownEffects is what is judged and, though no rule is about it, that the call
// runs on after its return.
func shownEffects(inv tools.Invocation, effects []policy.Effect) []message.EffectLine {
	lines := effectLines(effects)
	if inBackground(inv) {
		lines = append(lines, message.EffectLine{Kind: "background", Text: "runs on in the background after its return"})
	}
	return lines
}

func effectLines(effects []policy.Effect) []message.EffectLine {
	lines := make([]message.EffectLine, len(effects))
	for i, e := range effects {
		lines[i] = message.EffectLine{Kind: e.Kind.String(), Text: e.String(), Source: e.Source}
	}
	return lines
}

// Explain returns how a call of a client, whose connection selects dir, would be decided.
// Nothing runs, and nothing is recorded.
func (d *Dispatcher) Explain(client, dir string, asked message.ToolCall) (message.PolicyExplanation, *message.Error) {
	c := &Call{asked: asked, dir: dir}
	defer c.leaveWorkspace()
	var inv tools.Invocation
	refused := d.enter(context.Background(), c)
	if refused == nil {
		inv, refused = d.build(context.Background(), c.workspace, asked)
	}
	if refused != nil {
		return message.PolicyExplanation{}, message.Errorf(message.InvalidArguments, "%s", refused.text)
	}
	effects, current := inv.Effects(), c.workspace.rules.Load().policy.For(client, "")
	verdict, lines := current.Decide(effects), effectLines(effects)
	for i := range effects {
		alone := current.Decide(effects[i : i+1])
		lines[i].Action, lines[i].Rule = alone.Action.String(), alone.Rule
	}
	return message.PolicyExplanation{
		MessageType: "policy_explanation",
		Action:      verdict.Action.String(), Rule: verdict.Rule, Source: verdict.Source,
		Reason: verdict.Reason, Change: verdict.Change, Effects: lines,
	}, nil
}

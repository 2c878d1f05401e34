package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools"
)

func approvalRequest(ctx context.Context, c *Call, inv tools.Invocation, effects []policy.Effect, said *message.Decision, expires time.Time) message.ApprovalRequest {
	preview := tools.Preview{Text: inv.Text()}
	if p, ok := inv.(tools.Previewed); ok {
		preview = p.Preview(ctx)
	}
	var dir string
	if p, ok := inv.(interface{ Cwd() string }); ok {
		dir = p.Cwd()
	}
	return message.ApprovalRequest{
		MessageType: "approval_request_message",
		ID:          message.NewID("approval"),
		Date:        time.Now().UTC().Format(time.RFC3339Nano),
		CallID:      c.ID,
		Asker:       c.asker(),
		Workspace:   c.workspace.opt.Root,
		Cwd:         dir,
		ToolCall:    c.asked.Shown(),
		Rule:        said.Rule, Source: said.Source, Reason: said.Reason,
		Preview:     message.Preview{Text: preview.Text, Diff: preview.Diff},
		Effects:     shownEffects(inv, effects, said.Reason),
		ExpiresAt:   expires.UTC().Format(time.RFC3339Nano),
		Suggestions: []message.Suggestion{},
	}
}

// maxInOrder is how many effects toold shows to a person.
const maxInOrder = 50

// askedFirst returns the effects in the order of the script or, if not all will be shown, those that are not allowed
// first.
func (q question) askedFirst() []policy.Effect {
	if len(q.effects) <= maxInOrder {
		return q.effects
	}
	var asked, allowed []policy.Effect
	for _, e := range q.effects {
		if one := []policy.Effect{e}; q.rules.policy.Decide(one).Action == policy.Allow {
			allowed = append(allowed, e)
		} else {
			asked = append(asked, e)
		}
	}
	return append(asked, allowed...)
}

// offline warns that a call needs the network, which its sandbox does not have and approval alone does not add.
func (c *Call) offline(effects []policy.Effect) []message.EffectLine {
	if !c.confinement().Offline || !slices.ContainsFunc(effects, policy.Effect.Leaves) {
		return nil
	}
	return []message.EffectLine{{Kind: "sandbox", Text: "reaches nobody: its sandbox has no network (sandbox.network), unless the approval widens it (approval.widen)"}}
}

func shownEffects(inv tools.Invocation, effects []policy.Effect, reason string) []message.EffectLine {
	lines := make([]message.EffectLine, 0, len(effects))
	for _, e := range effects {
		text, missing := shownEffect(e)
		if idle := missing && e.Kind == policy.Read; idle && !strings.Contains(reason, e.Path) {
			continue // it reads nothing, and is not why approval is needed
		}
		lines = append(lines, message.EffectLine{Kind: e.Kind.String(), Text: text, Source: e.Source})
	}
	if inv.Traits().Input {
		lines = append(lines, message.EffectLine{Kind: "input", Text: "takes input from the agent while it runs"})
	}
	if inv.Traits().Background {
		lines = append(lines, message.EffectLine{Kind: "background", Text: "runs on in the background after its return"})
	}
	return lines
}

// shownEffect returns an effect as shown to the person who decides. It marks files that the analysis only guessed and
// files that do not exist, and says where links lead.
func shownEffect(e policy.Effect) (text string, missing bool) {
	text = e.String()
	certain := !e.Possible
	isPath := (e.Kind == policy.Read || e.Kind == policy.Write) && !e.Unknown
	if !isPath {
		return text, false
	}
	if !certain {
		text = "may " + text
	}
	if e.Canonical != "" && e.Canonical != e.Path {
		text += " (which is " + e.Canonical + ")"
	}
	_, err := os.Lstat(e.Path)
	made := certain && e.Kind == policy.Write
	if missing = errors.Is(err, fs.ErrNotExist) && !made; missing {
		text += " (there is no such file now)"
	}
	return text, missing
}

// Explain returns how a client's call would be decided on a connection that selects dir. It runs and records nothing.
// Unless person is set, the answer omits how to change a built-in rule.
func (d *Dispatcher) Explain(client, dir string, asked message.ToolCall, person bool) (message.PolicyExplanation, *message.Error) {
	c := &Call{asked: asked, dir: dir}
	defer c.leaveWorkspace()
	var inv tools.Invocation
	refused := d.enter(context.Background(), c)
	if refused == nil {
		inv, refused = d.build(context.Background(), c.workspace, asked)
	}
	if refused != nil {
		return message.PolicyExplanation{}, message.InvalidArguments.Errorf("%s", refused.text)
	}
	c.elsewhere = inv.Traits().Elsewhere
	j := check.Judge{Policy: c.workspace.rules.Load().policy.Within(c.confinement()), Client: client}
	e := j.ExplainEffects(inv.Effects())
	lines := make([]message.EffectLine, len(e.Effects))
	for i, one := range e.Effects {
		lines[i] = message.EffectLine{Kind: one.Kind, Text: one.Text, Source: one.Source, Action: one.Action.String(), Rule: one.Rule}
	}
	if e.Loosens && !person {
		e.Change = "" // the model must not learn how to disable a protection
	}
	return message.PolicyExplanation{
		MessageType: "policy_explanation",
		Action:      e.Action.String(), Rule: e.Rule, Source: e.Source,
		Reason: e.Reason, Change: e.Change, Effects: lines,
	}, nil
}

const longestWords = 2000

// findAsker parses the arguments. Call.asker calls it once.
func (c *Call) findAsker() message.Asker {
	a := c.Client()
	var words struct{ Description, Justification json.RawMessage }
	if json.Unmarshal(c.asked.Arguments, &words) == nil {
		a.Description, a.Justification = firstWords(words.Description), firstWords(words.Justification)
	}
	return a
}

func firstWords(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return redact.Short(text, longestWords)
}

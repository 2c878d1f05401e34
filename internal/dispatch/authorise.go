package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

type rules struct {
	policy   *policy.Policy
	replaced chan struct{} // closed by Workspace.SetPolicy
}

func (d *Dispatcher) rulesFor(c *Call) *rules {
	r := c.workspace.rules.Load()
	return &rules{policy: r.policy.For(c.client, c.req.AgentID).Within(c.confinement()), replaced: r.replaced}
}

// confinement returns what a policy may rely on for this call.
func (c *Call) confinement() policy.Confinement {
	if c.escalation != nil || c.elsewhere {
		return policy.Confinement{}
	}
	return Confinement(c.workspace.opt.Profile)
}

// Confinement returns what a policy may rely on for a call in a sandbox. It may rely on nothing for a call with an
// escalation.
func Confinement(p sandbox.Profile) policy.Confinement {
	judged := !p.Network && len(p.Sockets) == 0
	return policy.Confinement{
		View:    p.Mode != sandbox.FullAccess && p.Tier != sandbox.TierC,
		Masked:  p.Masking(),
		Judged:  judged,
		Offline: judged && len(p.Ports) == 0,
	}
}

func (d *Dispatcher) authorise(ctx context.Context, c *Call, inv tools.Invocation) (*message.Decision, *refusal) {
	effects, current := inv.Effects(), d.rulesFor(c)
	verdict := current.policy.Decide(effects)
	said := c.decided(verdict)
	c.stepped(StepJudge, c.born)
	if verdict.Action != policy.Ask {
		return settled(verdict, said)
	}
	q := question{call: c, inv: inv, effects: effects, rules: current, said: said}
	if said := d.remembered(q); said != nil {
		return said, nil
	}
	return d.ask(ctx, q)
}

func (c *Call) decided(v policy.Decision) *message.Decision {
	c.profile = v.Profile
	c.notify(message.PolicyDecision{
		MessageType: "policy_decision", CallID: c.ID, AgentID: c.key.Agent, Action: v.Action.String(),
		Rule: v.Rule, Source: v.Source, Reason: v.Reason,
	})
	return saidBy("policy", v)
}

func saidBy(by string, v policy.Decision) *message.Decision {
	return &message.Decision{Action: v.Action.String(), By: by, Rule: v.Rule, Source: v.Source, Reason: v.Reason}
}

func settled(v policy.Decision, said *message.Decision) (*message.Decision, *refusal) {
	if v.Action == policy.Allow {
		return said, nil
	}
	return said, deniedByPolicy(v)
}

// judge decides on effects that appear while a call runs, by the policy at its start. It does not ask: if the policy
// asks, the effect is allowed only if a person approved the call and the same rule had asked about it.
func (d *Dispatcher) judge(c *Call, said *message.Decision) func(policy.Effect) policy.Decision {
	rules := d.rulesFor(c).policy
	return func(e policy.Effect) policy.Decision {
		v := rules.Decide([]policy.Effect{e})
		approved := said.By == "person" && said.Action == policy.Allow.String() && v.Rule == said.Rule
		if v.Action == policy.Ask && approved {
			v.Action = policy.Allow
		}
		return v
	}
}

type question struct {
	call         *Call
	inv          tools.Invocation
	effects      []policy.Effect
	rules        *rules // the policy that asked
	said         *message.Decision
	id           string                        // of the approval request
	offers       []check.Offer                 // how an approval can be remembered
	firstChanged func(approval.Verdict) string // of watch
}

func (d *Dispatcher) ask(ctx context.Context, q question) (*message.Decision, *refusal) {
	c, said := q.call, q.said
	seen, firstChanged := q.watch()
	q.firstChanged = firstChanged
	if refused := d.receive(c); refused != nil {
		return nil, refused
	}
	if err := d.opt.Journal.Decide(c.rec, journal.Waiting, journalDecision(said)); err != nil {
		return nil, &refusal{message.InternalError, "the decision cannot be journalled, so nothing ran: " + err.Error()}
	}
	c.proceed(message.CallWaiting, nil)
	defer c.stepped(StepAsk, time.Now())
	patience := d.patience(q.rules)
	expires := c.askedAt().Add(patience)
	shown := approvalRequest(ctx, c, q.inv, q.askedFirst(), said, expires)
	shown.Effects = append(shown.Effects, c.offline(q.effects)...)
	shown.ID = c.approvalID(shown, seen)
	q.id, q.offers = shown.ID, d.offers(ctx, q)
	shown.MayWiden, shown.Suggestions = (*message.MayWiden)(escalationLimits(q).Offer(q.call.base())), suggestions(q)
	var later error
	if c.kept {
		later = errShutdown
	}
	answer, now, err := d.wait(ctx, q, approval.Request[message.ApprovalRequest]{
		CallID: c.ID, Expires: expires, Show: shown, Check: d.checkAnswer(q), Asked: c.resumes, Again: c.again != nil, Later: later,
	})
	_, isSettled := errors.AsType[*approval.Settled](err)
	yes := err == nil && answer.Approve
	path := ""
	if now.Action == policy.Allow || yes && answer.Arguments == "" { // an edited call is built from what is there now
		path = q.firstChanged(answer)
	}
	switch {
	case path != "":
		return replaced(said, answer.By, path)
	case isSettled:
		return settled(now, c.decided(now))
	case yes:
		return d.approved(q, answer)
	}
	return answered(ctx, said, answer, patience, err)
}

// replaced refuses an allowed call whose files look different than when a person was asked.
func replaced(said *message.Decision, person, path string) (*message.Decision, *refusal) {
	said.Action, said.Person = policy.Deny.String(), person
	said.Reason = path + " has changed since a person was asked"
	return said, &refusal{message.Denied, said.Reason + ", so nothing ran. Send the call again under a new id: they are asked about what is there now"}
}

// wait waits for an answer. If a new policy settles the question first, err is an approval.Settled, and now is what
// that policy decides.
func (d *Dispatcher) wait(ctx context.Context, q question, r approval.Request[message.ApprovalRequest]) (answer approval.Verdict, now policy.Decision, err error) {
	waiting, settle := context.WithCancelCause(ctx)
	var judging sync.WaitGroup
	// Ends when the question is answered or settled.
	judging.Go(func() { now = d.judgeAgain(waiting, q, settle) })
	r.ID, r.Answered = q.id, d.takeAnswer(q)
	answer, err = d.opt.Approvals.Ask(waiting, r)
	settle(nil)
	judging.Wait()
	return answer, now, err
}

// approved applies an approval. It refuses if a new policy denies the call or the escalation is no longer possible.
func (d *Dispatcher) approved(q question, answer approval.Verdict) (*message.Decision, *refusal) {
	c := q.call
	edited, err := d.editedCall(q, answer)
	if err != nil {
		q.said.Action = policy.Deny.String()
		return q.said, &refusal{message.Denied, "a person edited the call, and the edited one cannot run: " + err.Error()}
	}
	if edited != nil {
		q.inv, q.effects, c.edited = edited, edited.Effects(), edited
		_, q.firstChanged = q.watch()
	}
	c.firstChanged = func() string { return q.firstChanged(answer) }
	now := d.rulesFor(c).policy.Decide(q.effects)
	if now.Action == policy.Deny {
		return settled(now, c.decided(now))
	}
	c.profile = now.Profile
	c.saw(q.effects)
	said := allowed(q.said, answer)
	said.Edited = json.RawMessage(answer.Arguments)
	d.remember(q, answer)
	g, err := escalate(q, c.base(), answer)
	if err != nil {
		said.Action, said.Reason = policy.Deny.String(), err.Error()
		return said, &refusal{message.SandboxUnavailable, fmt.Sprintf("a person (%s) allowed the call with a wider sandbox, which cannot be given any more: %v; nothing ran. Send the call again under a new id", answer.By, err)}
	}
	c.escalation = g
	said.Widened = c.added()
	return said, nil
}

// saw records which effects a person who approved them has seen by path: in opened all writes and reads except of
// attributes alone, and in approved the written files, but not whole trees.
func (c *Call) saw(effects []policy.Effect) {
	c.approved, c.opened = nil, nil
	for _, e := range effects {
		path := e.Kind == policy.Read && e.Part != policy.PartAttributes || e.Kind == policy.Write
		if !path || e.Unknown || e.Canonical == "" {
			continue
		}
		c.opened = append(c.opened, e)
		if e.Kind == policy.Write && !e.Tree {
			c.approved = append(c.approved, e.Canonical)
		}
	}
}

func (d *Dispatcher) patience(r *rules) time.Duration {
	if t := r.policy.AskTimeout(); t > 0 {
		return t
	}
	return d.opt.Limits.ApprovalTimeout
}

// judgeAgain decides a waiting call by each new policy until ctx ends. If one no longer asks, it settles the question
// and returns the decision.
func (d *Dispatcher) judgeAgain(ctx context.Context, q question, settle context.CancelCauseFunc) policy.Decision {
	for current := q.rules; ; {
		select {
		case <-ctx.Done():
			return policy.Decision{}
		case <-current.replaced:
		}
		current = d.rulesFor(q.call)
		if v := current.policy.Decide(q.effects); v.Action != policy.Ask {
			settle(&approval.Settled{Verdict: approval.Verdict{
				Approve: v.Action == policy.Allow, By: "policy", Reason: "the policy has changed: " + v.Reason,
			}})
			return v
		}
	}
}

func answered(ctx context.Context, said *message.Decision, answer approval.Verdict, patience time.Duration, err error) (*message.Decision, *refusal) {
	rule := said.Rule
	said.Action = policy.Deny.String()
	switch {
	case errors.Is(err, approval.ErrNoApprover):
		return said, &refusal{message.Denied, fmt.Sprintf("denied: rule %s asks a person (%s), and no approver is connected. Ask the user to run `toold watch`, then send the call again under a new id", rule, policy.WithoutAsking(said.Reason))}
	case errors.Is(err, approval.ErrExpired):
		said.By = "deadline"
		return said, &refusal{message.ApprovalTimeout, fmt.Sprintf("no one answered within %s, so the call did not run (rule %s: %s). Do not repeat it unasked; tell the user what you wanted to do", patience, rule, policy.WithoutAsking(said.Reason))}
	case err != nil:
		return said, stopped(ctx)
	case !answer.Approve:
		said.By, said.Person, said.Reason = byWhom(answer), answer.By, answer.Reason
		return said, deniedByPerson(answer, rule)
	}
	return allowed(said, answer), nil
}

func allowed(said *message.Decision, answer approval.Verdict) *message.Decision {
	said.Action, said.By, said.Person = policy.Allow.String(), byWhom(answer), answer.By
	if answer.Reason != "" {
		said.Reason = answer.Reason
	}
	return said
}

func byWhom(answer approval.Verdict) string {
	if answer.Before {
		return "beforehand"
	}
	return "person"
}

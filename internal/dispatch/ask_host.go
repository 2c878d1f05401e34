package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// hostAnswer is what a person says about one host. Who has put an element into turn
// uses the rest; the others wait, and find the answer or ask themselves when the
// one before them is gone.
type hostAnswer struct {
	turn chan struct{}     // capacity 1
	said *message.Decision // nil until there is an answer
	port uint16            // about which it was asked
	err  error             // nil = yes
}

// ask puts a host before a person, once for all ports.
func (n *connections) ask(ctx context.Context, rules *rules, host string, v policy.Decision) error {
	n.mu.Lock()
	h := n.hosts[host]
	if h == nil {
		if n.asked >= n.d.opt.Limits.AskedHosts {
			n.mu.Unlock()
			return n.tooMany(host, v)
		}
		n.asked++
		h = &hostAnswer{turn: make(chan struct{}, 1)}
		n.hosts[host] = h
	}
	n.mu.Unlock()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if h.said == nil {
		said, err := n.question(ctx, rules, v)
		if ctx.Err() != nil {
			return context.Cause(ctx) // who waits is gone; that is no answer
		}
		h.said, h.port, h.err = said, uint16(v.Effect.Port), err
	}
	return n.tell(host, h.port, *h.said, h.err)
}

// tooMany refuses a host that would be one question too many.
func (n *connections) tooMany(host string, v policy.Decision) error {
	why := fmt.Sprintf("denied: a person was asked for %d hosts of this call already (limits.asked_hosts). List the hosts that are needed under sandbox.egress.allow, or write rules for them", n.d.opt.Limits.AskedHosts)
	said := message.Decision{Action: policy.Deny.String(), By: "policy", Rule: v.Rule, Source: v.Source, Reason: why}
	return n.tell(host, uint16(v.Effect.Port), said, errors.New(why))
}

// question asks a person as soon as few enough hosts of the call wait for one. The
// error is why the host may not be contacted.
func (n *connections) question(ctx context.Context, rules *rules, v policy.Decision) (*message.Decision, error) {
	select {
	case n.places <- struct{}{}:
		defer func() { <-n.places }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	said := &message.Decision{Action: v.Action.String(), By: "policy", Rule: v.Rule, Source: v.Source, Reason: v.Reason}
	q := question{n.call, n.inv, []policy.Effect{v.Effect}, rules, said}
	patience := n.d.patience(rules)
	answer, err := n.d.askHost(ctx, q, patience)
	said, refused := answered(ctx, said, answer, patience, err)
	if refused != nil {
		return said, errors.New(refused.text)
	}
	return said, nil
}

// askHost asks the connected approvers. A policy that needs no answer any more
// answers instead of them.
func (d *Dispatcher) askHost(ctx context.Context, q question, patience time.Duration) (approval.Verdict, error) {
	expires := time.Now().Add(patience)
	shown := approvalRequest(q.call, q.inv, q.effects, q.said, expires)
	shown.Reason = "The running call wants to contact " + q.effects[0].Host + ". " + shown.Reason
	waiting, settle := context.WithCancelCause(ctx)
	judged := make(chan struct{})
	// Ends when the question does.
	go func() {
		defer close(judged)
		d.judgeAgain(waiting, q, settle)
	}()
	answer, err := d.opt.Approvals.Ask(waiting, approval.Request[message.ApprovalRequest]{
		ID: shown.ID, CallID: q.call.ID, Owner: q.call.client, Expires: expires, Show: shown, Check: onlyYesOrNo,
	})
	settle(nil)
	<-judged
	if settled := (*approval.Settled)(nil); errors.As(err, &settled) {
		return settled.Verdict, nil
	}
	return answer, err
}

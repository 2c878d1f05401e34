package dispatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// hostQuestion is one approval request about a host, for the ports at which one rule asks. A goroutine that sent to
// turn owns the other fields.
type hostQuestion struct {
	asks []policy.Decision // one for each port
	turn chan struct{}     // capacity 1
	said *message.Decision // nil until answered
	err  error             // nil if the answer is yes
}

type questionKey struct {
	host         string
	port         int
	rule, source string
}

func keyOf(v policy.Decision) questionKey {
	return questionKey{v.Effect.Host, v.Effect.Port, v.Rule, v.Source}
}

// errReplaced ends a question that a new policy has decided.
var errReplaced = errors.New("the policy was replaced")

// ask requests approval for a host, once for all ports with the same rule. It returns nil after the first yes.
func (n *connections) ask(ctx context.Context, rules *rules, asks []policy.Decision) error {
	var refused error
	for len(asks) > 0 {
		same, other := asks[:0:0], asks[:0:0]
		for _, v := range asks {
			if v.Rule == asks[0].Rule && v.Source == asks[0].Source {
				same = append(same, v)
			} else {
				other = append(other, v)
			}
		}
		for _, q := range n.questions(same) {
			refused = n.answer(ctx, rules, q)
			if refused == nil || ctx.Err() != nil || errors.Is(refused, errReplaced) {
				return refused
			}
		}
		asks = other
	}
	return refused
}

// questions returns the earlier questions about these ports and a new one about the others.
func (n *connections) questions(asks []policy.Decision) []*hostQuestion {
	n.mu.Lock()
	defer n.mu.Unlock()
	var known []*hostQuestion
	fresh := &hostQuestion{turn: make(chan struct{}, 1)}
	for _, v := range asks {
		if q := n.asked[keyOf(v)]; q == nil {
			fresh.asks = append(fresh.asks, v)
		} else if !slices.Contains(known, q) {
			known = append(known, q)
		}
	}
	if len(fresh.asks) == 0 {
		return known
	}
	if n.count >= n.d.opt.Limits.AskedHosts {
		if len(known) > 0 {
			return known
		}
		fresh.said, fresh.err = n.tooMany(fresh.asks[0])
		return []*hostQuestion{fresh}
	}
	n.count++
	for _, v := range fresh.asks {
		n.asked[keyOf(v)] = fresh
	}
	return append(known, fresh)
}

// answer waits for the answer to a question and returns nil if it is yes.
func (n *connections) answer(ctx context.Context, rules *rules, q *hostQuestion) error {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if q.said == nil {
		said, err := n.question(ctx, rules, q.asks)
		if ctx.Err() != nil {
			return context.Cause(ctx) // the connection that waited is gone
		}
		if errors.Is(err, errReplaced) {
			n.forget(q)
			return err
		}
		q.said, q.err = said, err
	}
	return n.report(q.asks, *q.said, q.err)
}

func (n *connections) forget(q *hostQuestion) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range q.asks {
		if n.asked[keyOf(v)] == q {
			delete(n.asked, keyOf(v))
		}
	}
}

func (n *connections) tooMany(v policy.Decision) (*message.Decision, error) {
	why := fmt.Sprintf("denied: a person was asked %d times for hosts of this call already (limits.asked_hosts). List the hosts that are needed under sandbox.egress.allow, or write rules for them", n.d.opt.Limits.AskedHosts)
	return &message.Decision{Action: policy.Deny.String(), By: "policy", Rule: v.Rule, Source: v.Source, Reason: why}, errors.New(why)
}

// question requests approval when a slot is free. An error means a denial.
func (n *connections) question(ctx context.Context, rules *rules, asks []policy.Decision) (*message.Decision, error) {
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	v, effects := asks[0], make([]policy.Effect, len(asks))
	for i := range asks {
		effects[i] = asks[i].Effect
	}
	said := saidBy("policy", v)
	q := question{call: n.call, inv: n.inv, effects: effects, rules: rules, said: said}
	patience := n.d.patience(rules)
	answer, err := n.d.askHost(ctx, q, patience)
	if errors.Is(err, errReplaced) {
		return nil, err
	}
	said, refused := answered(ctx, said, answer, patience, err)
	if refused != nil {
		return said, errors.New(refused.text)
	}
	return said, nil
}

func (d *Dispatcher) askHost(ctx context.Context, q question, patience time.Duration) (approval.Verdict, error) {
	expires := time.Now().Add(patience)
	shown := approvalRequest(ctx, q.call, q.inv, q.effects, q.said, expires)
	q.id = shown.ID
	shown.Reason = fmt.Sprintf("The running call wants to contact %s. A yes opens %s. %s", q.effects[0].Host, portsOf(q.effects), shown.Reason)
	for i, e := range q.effects {
		shown.Effects[i].Text = "contact " + net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	}
	answer, _, err := d.wait(ctx, q, approval.Request[message.ApprovalRequest]{Expires: expires, Show: shown, Check: onlyYesOrNo})
	if settled, is := errors.AsType[*approval.Settled](err); is {
		return settled.Verdict, errReplaced
	}
	return answer, err
}

func portsOf(effects []policy.Effect) string {
	if len(effects) == 1 {
		return fmt.Sprintf("its port %d, no other", effects[0].Port)
	}
	ports := make([]string, len(effects))
	for i, e := range effects {
		ports[i] = strconv.Itoa(e.Port)
	}
	return "its ports " + strings.Join(ports, ", ") + ", no others"
}

package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// askedAtOnce limits how many hosts of one call await approval at a time.
const askedAtOnce = 8

// maxDecisions limits the connection decisions reported for one call. Further hosts are denied.
const maxDecisions = 4096

// connections decides which hosts a running call may contact. No approval is needed for hosts decided with the call,
// unless a rule always asks, or for hosts in the configuration, unless a rule asks. Denials always apply.
type connections struct {
	d      *Dispatcher
	call   *Call
	inv    tools.Invocation
	judged map[destination]bool // decided with the call
	slots  chan struct{}        // one element per host awaiting approval

	mu       sync.Mutex
	asked    map[questionKey]*hostQuestion
	count    int // number of questions
	reported map[decisionKey]*decisionRecord
}

type decisionKey struct {
	host         string
	port         int
	action, rule string
}

// decisionRecord ensures that a decision is journaled once.
type decisionRecord struct {
	mu      sync.Mutex
	written bool
}

// destination is a host and a port; port 0 means any.
type destination struct {
	host string
	port int
}

func (d *Dispatcher) connections(c *Call, inv tools.Invocation) *connections {
	n := &connections{
		d: d, call: c, inv: inv, judged: map[destination]bool{}, slots: make(chan struct{}, askedAtOnce),
		asked: map[questionKey]*hostQuestion{}, reported: map[decisionKey]*decisionRecord{},
	}
	for _, e := range inv.Effects() {
		if e.Kind == policy.Net && e.Host != "" && !e.Possible {
			n.judged[destination{e.Host, cmp.Or(e.Port, map[string]int{"http": 80, "https": 443}[e.Scheme])}] = true
		}
	}
	return n
}

// decide returns nil if the call may contact the host at one of the ports. It may wait for approval.
func (n *connections) decide(ctx context.Context, host string, ports []uint16) error {
	for {
		err := n.decideBy(ctx, n.d.rulesFor(n.call), host, ports)
		if !errors.Is(err, errReplaced) {
			return err
		}
	}
}

func (n *connections) decideBy(ctx context.Context, rules *rules, host string, ports []uint16) error {
	var asks, denied []policy.Decision
	for _, port := range ports {
		v, by := n.judge(rules, host, port)
		v.Effect = contact(host, port)
		switch v.Action {
		case policy.Allow:
			return n.report([]policy.Decision{v}, *saidBy(by, v), nil)
		case policy.Ask:
			asks = append(asks, v)
		default:
			denied = append(denied, v)
		}
	}
	if len(asks) > 0 {
		return n.ask(ctx, rules, asks)
	}
	if len(denied) == 0 {
		return errors.New("denied: no port of the host is known")
	}
	return n.deny(denied[0])
}

func (n *connections) deny(v policy.Decision) error {
	return n.report([]policy.Decision{v}, *saidBy("policy", v), errors.New(deniedByPolicy(v).text))
}

// revoked waits until a policy denies an existing connection, and returns why. A policy that asks does not end the
// connection.
func (n *connections) revoked(ctx context.Context, host string, port uint16) error {
	for {
		rules := n.d.rulesFor(n.call)
		v, _ := n.judge(rules, host, port)
		if v.Action == policy.Deny {
			v.Effect = contact(host, port)
			return n.deny(v)
		}
		select {
		case <-rules.replaced:
		case <-ctx.Done():
			return nil
		}
	}
}

// judge decides on one port. An escalation for the host takes precedence over a rule that asks, but not over one that
// denies.
func (n *connections) judge(rules *rules, host string, port uint16) (v policy.Decision, by string) {
	v = n.judgeRules(rules, host, port)
	lets, alone := n.call.escalation.Lets(host, port)
	switch {
	case v.Action == policy.Deny:
	case lets:
		v.Action, v.Reason = policy.Allow, "A person has let this call contact "+host+"."
		return v, "person"
	case alone:
		return policy.Decision{
			Action: policy.Deny, Rule: "sandbox.network", Source: "configuration",
			Reason: "The network of calls is off, and a person has opened it for " + n.call.escalation.Words().Host + " alone, in this call. No rule opens it further: tell the user what else is needed.",
		}, "policy"
	}
	return v, "policy"
}

func (n *connections) judgeRules(rules *rules, host string, port uint16) policy.Decision {
	v := rules.policy.Decide([]policy.Effect{contact(host, port)})
	if v.Action == policy.Ask && v.Rule == "defaults.net" && n.listed(host, port) {
		v.Action, v.Rule, v.Source = policy.Allow, "sandbox.egress.allow", "configuration"
		v.Reason = "The configuration lists " + host + "."
	}
	judged := n.judged[destination{host, int(port)}] || n.judged[destination{host, 0}]
	if v.Action == policy.Ask && judged && !v.Always {
		v.Action, v.Reason = policy.Allow, "The call was allowed with "+host+" in it."
	}
	return v
}

func (n *connections) listed(host string, port uint16) bool {
	listed := n.call.workspace.opt.Listed
	return listed != nil && listed(host, port)
}

func contact(host string, port uint16) policy.Effect {
	e := policy.Effect{Kind: policy.Net, Host: host, Port: int(port), Source: fmt.Sprintf("a connection to %s:%d", host, port)}
	e.Scheme = map[uint16]string{80: "http", 443: "https"}[port]
	return e
}

// report journals a decision about ports of a host once, emits it, and returns why as a denial. A connection waits
// until the decision that allows it is journaled.
func (n *connections) report(about []policy.Decision, said message.Decision, why error) error {
	host := about[0].Effect.Host
	if why != nil {
		why = &sandbox.Denial{
			Kind: sandbox.DeniedHost, Op: "connect to", Target: host, Exact: true, Setting: said.Rule, Hint: why.Error(),
		}
	}
	r := n.recordOf(decisionKey{host, about[0].Effect.Port, said.Action, said.Rule})
	if r == nil {
		return errors.Join(why, fmt.Errorf("denied: this call has tried %d hosts and ports already. Split it into several calls", maxDecisions))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written {
		return why
	}
	if err := n.record(about, said); err != nil {
		return errors.Join(why, fmt.Errorf("the decision cannot be journalled: %w", err))
	}
	r.written = true
	return why
}

func (n *connections) recordOf(key decisionKey) *decisionRecord {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.reported[key]
	if r == nil && len(n.reported) < maxDecisions {
		r = &decisionRecord{}
		n.reported[key] = r
	}
	return r
}

func (n *connections) record(about []policy.Decision, said message.Decision) error {
	c := n.call
	e := message.ConnectionDecision{
		MessageType: "connection_decision", CallID: c.ID, AgentID: c.key.Agent, Host: n.d.hidden(about[0].Effect.Host), Port: about[0].Effect.Port,
		Action: said.Action, By: said.By, Rule: said.Rule, Source: said.Source, Reason: n.d.hidden(said.Reason),
	}
	for _, v := range about {
		if len(about) > 1 {
			e.Ports = append(e.Ports, v.Effect.Port)
		}
	}
	body, err := message.Encode(e)
	if err == nil {
		m := c.message(e.MessageType, journal.Out, body)
		m.ID = message.NewID("message")
		_, err = n.d.opt.Journal.Append(m)
	}
	if err != nil {
		n.d.opt.Log.Error("cannot journal a decision on a connection", zap.String("call", c.ID), zap.Error(err))
		return err
	}
	c.emit(e)
	return nil
}

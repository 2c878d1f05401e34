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

// askedAtOnce is how many hosts of one call wait for a person at a time. The next
// one waits for its turn: a person reads one question after the other.
const askedAtOnce = 8

// maxDecisions is how many decisions on connections of one call are journalled and
// told. There is no end of hosts that a call can think of; beyond it nothing new
// may be contacted.
const maxDecisions = 4096

// connections decides which hosts one running call may contact. A host that was
// judged with the call itself, or that the configuration lists, needs no further
// question; a rule that denies or asks binds all the same.
type connections struct {
	d      *Dispatcher
	call   *Call
	inv    tools.Invocation
	judged map[destination]bool // with the call
	places chan struct{}        // one element per host that waits for a person

	mu    sync.Mutex
	hosts map[string]*hostAnswer
	asked int                     // hosts put before a person
	told  map[string]func() error // decisions; each is journalled and told at the first call
}

// destination is a host and a port of it; 0 = any.
type destination struct {
	host string
	port int
}

func (d *Dispatcher) connections(c *Call, inv tools.Invocation) *connections {
	n := &connections{
		d: d, call: c, inv: inv, judged: map[destination]bool{}, places: make(chan struct{}, askedAtOnce),
		hosts: map[string]*hostAnswer{}, told: map[string]func() error{},
	}
	for _, e := range inv.Effects() {
		if e.Kind == policy.Net && e.Host != "" && !e.Possible {
			n.judged[destination{e.Host, cmp.Or(e.Port, map[string]int{"http": 80, "https": 443}[e.Scheme])}] = true
		}
	}
	return n
}

// decide lets the call contact a host at one of the ports, or tells why not. It
// may wait for a person.
func (n *connections) decide(ctx context.Context, host string, ports []uint16) error {
	var asking, denied policy.Decision
	asks := false
	rules := n.d.rulesFor(n.call)
	for _, port := range ports {
		v, by := n.judge(rules, host, port)
		switch v.Action {
		case policy.Allow:
			return n.tell(host, port, message.Decision{Action: "allow", By: by, Rule: v.Rule, Source: v.Source, Reason: v.Reason}, nil)
		case policy.Ask:
			asking, asks = v, true
		default:
			denied = v
		}
	}
	if !asks {
		return n.tell(host, ports[0], message.Decision{Action: "deny", By: "policy", Rule: denied.Rule, Source: denied.Source, Reason: denied.Reason},
			errors.New(deniedByPolicy(denied).text))
	}
	return n.ask(ctx, rules, host, asking)
}

// judge is the policy's word on one port, or that of the person who has opened the
// network for one host: it outweighs a rule that asks, not one that denies.
func (n *connections) judge(rules *rules, host string, port uint16) (v policy.Decision, by string) {
	v = n.judgeRules(rules, host, port)
	lets, alone := n.call.widened.Lets(host, port)
	switch {
	case v.Action == policy.Deny:
	case lets:
		v.Action, v.Reason = policy.Allow, "A person has let this call contact "+host+"."
		return v, "person"
	case alone:
		v.Action, v.Rule, v.Source = policy.Deny, "sandbox.network", "configuration"
		v.Reason = "The network of calls is off, and a person has opened it for another host alone."
	}
	return v, "policy"
}

// judgeRules is the policy's word on one port.
func (n *connections) judgeRules(rules *rules, host string, port uint16) policy.Decision {
	v := rules.policy.Decide([]policy.Effect{contact(host, port)})
	if v.Action == policy.Ask && v.Rule == "defaults.net" && n.d.opt.Listed != nil && n.d.opt.Listed(host, port) {
		v.Action, v.Rule, v.Source = policy.Allow, "sandbox.egress.allow", "configuration"
		v.Reason = "The configuration lists " + host + "."
	}
	if v.Action == policy.Ask && (n.judged[destination{host, int(port)}] || n.judged[destination{host, 0}]) && !v.Always {
		v.Action, v.Reason = policy.Allow, "The call was allowed with "+host+" in it."
	}
	return v
}

// contact is the effect of a connection. What is spoken at a port is taken to be
// what belongs there.
func contact(host string, port uint16) policy.Effect {
	e := policy.Effect{Kind: policy.Net, Host: host, Port: int(port), Source: fmt.Sprintf("a connection to %s:%d", host, port)}
	e.Scheme = map[uint16]string{80: "http", 443: "https"}[port]
	return e
}

// tell journals a decision and tells it, each once, and hands why on, as a denial. One that
// lets a connection be made and cannot be journalled is none: who is let through
// by it waits until it is.
func (n *connections) tell(host string, port uint16, said message.Decision, why error) error {
	if why != nil {
		why = &sandbox.Denial{
			Kind: sandbox.DeniedHost, Op: "connect to", Target: host, Exact: true, Setting: said.Rule, Hint: why.Error(),
		}
	}
	key := fmt.Sprint(host, port, said.Action, said.Rule)
	n.mu.Lock()
	record, known := n.told[key]
	if !known && len(n.told) == maxDecisions {
		n.mu.Unlock()
		return errors.Join(why, fmt.Errorf("denied: this call has tried %d hosts and ports already. Split it into several calls", maxDecisions))
	}
	if !known {
		record = sync.OnceValue(func() error { return n.record(host, port, said) })
		n.told[key] = record
	}
	n.mu.Unlock()
	err := record()
	if err == nil {
		return why
	}
	n.mu.Lock()
	delete(n.told, key) // the next one tries again
	n.mu.Unlock()
	return errors.Join(why, fmt.Errorf("the decision cannot be journalled: %w", err))
}

// record journals a decision, and tells it then.
func (n *connections) record(host string, port uint16, said message.Decision) error {
	c := n.call
	e := message.ConnectionDecision{
		MessageType: "connection_decision", CallID: c.ID, Host: host, Port: int(port),
		Action: said.Action, By: said.By, Rule: said.Rule, Source: said.Source, Reason: said.Reason,
	}
	body, err := message.Encode(e)
	if err == nil {
		_, err = n.d.opt.Journal.Append(context.Background(), journal.Message{
			ID: message.NewID("message"), Type: e.MessageType, Direction: journal.Out, Client: c.client,
			AgentID: c.req.AgentID, ConversationID: c.req.ConversationID, RunID: c.req.RunID, StepID: c.req.StepID,
			CallID: c.ID, Body: body,
		})
	}
	if err != nil {
		n.d.opt.Log.Error("cannot journal a decision on a connection", zap.String("call", c.ID), zap.Error(err))
		return err
	}
	c.emit(e)
	return nil
}

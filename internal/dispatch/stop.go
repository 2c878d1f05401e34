package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// Causes of stopped calls, besides cancelled. Each becomes an error_type and a cause.
var (
	errClientGone = errors.New("the client went away and did not come back")
	errShutdown   = errors.New("toold is stopping")
)

type cancelled struct{ reason string }

func (c *cancelled) Error() string {
	if c.reason == "" {
		return "the call was cancelled"
	}
	return "the call was cancelled: " + c.reason
}

// stopped returns the refusal for a call whose context has ended, by its cause.
func stopped(ctx context.Context) *refusal {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errShutdown):
		return &refusal{message.Shutdown, "toold was stopped before the call had ended. Send it again under a new id when toold is back"}
	case errors.Is(cause, errClientGone):
		return &refusal{message.Cancelled, "the client went away and did not come back within limits.linger. Send the call again under a new id if it is still wanted"}
	case cause == nil:
		return &refusal{message.Cancelled, new(cancelled).Error()}
	default:
		return &refusal{message.Cancelled, fmt.Sprintf("%v. Do not repeat it unasked", cause)}
	}
}

// causeOf returns what caused an error of a kind, as a return names it, or "" if nothing stopped the call.
func causeOf(ctx context.Context, kind message.ErrorType) string {
	switch {
	case kind == message.Timeout:
		return message.ByTimeout
	case kind == message.Shutdown:
		return message.ByShutdown
	case kind != message.Cancelled:
		return ""
	case errors.Is(context.Cause(ctx), errClientGone):
		return message.ByClientGone
	default:
		return message.ByCancel
	}
}

// explained adds to a cancelled result what stopped the call.
func explained(ctx context.Context, r tools.Result) tools.Result {
	if r.Failure != tools.Cancelled {
		return r
	}
	why := stopped(ctx)
	r.Failure = tools.Failure(why.kind)
	text := "Stopped: " + why.text + "."
	if r.Text != "" {
		text += "\n" + r.Text
	}
	r.Text = text
	return r
}

// refusal is an error return; text says why, and what to do next.
type refusal struct {
	kind message.ErrorType
	text string
}

// deniedByPolicy returns the refusal for a denial. The decision's reason says why, and what to do.
func deniedByPolicy(d policy.Decision) *refusal {
	text := fmt.Sprintf("denied by rule %s (%s). %s", d.Rule, d.Source, d.Reason)
	if part := strings.TrimSpace(d.Effect.Source); part != "" && !strings.Contains(d.Reason, part) {
		text += " The part at fault: " + part + "."
	}
	return &refusal{message.Denied, text}
}

func deniedByPerson(v approval.Verdict, rule string) *refusal {
	return &refusal{message.Denied, fmt.Sprintf("denied by a person (%s), whom rule %s asked. User reason: %s", v.By, rule, cmp.Or(v.Reason, "no reason given"))}
}

const maxEarlyCancels = 1024

// earlyCancels has the names of calls that were cancelled before they arrived, by client, oldest first.
type earlyCancels map[string][]string

func (e earlyCancels) add(client, name string) {
	names := append(e[client], name)
	if len(names) > maxEarlyCancels {
		names = names[1:]
	}
	e[client] = names
}

// first returns the first of the names that was cancelled, or "".
func (e earlyCancels) first(client string, names ...string) string {
	for _, name := range names {
		if slices.Contains(e[client], name) {
			return name
		}
	}
	return ""
}

func (e earlyCancels) remove(client, name string) {
	if i := slices.Index(e[client], name); i >= 0 {
		e[client] = slices.Delete(e[client], i, i+1)
	}
}

// earlyCancelName returns the name of an early cancel of an id for this call's agent alone. That for all agents is the
// id.
func (d *Dispatcher) earlyCancelName(c *Call, id string) string {
	return d.opt.Journal.EarlyCancelName(&c.key.Agent, id)
}

// CancelEarly cancels a call of an agent before it arrives, or the parts of an item that have not arrived. If agent is
// nil, it means the agents that have begun the item or, if there are none, all. It returns false if the id is already
// used, or if the cancel cannot be recorded.
func (d *Dispatcher) CancelEarly(ctx context.Context, client string, agent *string, id string) (cancelled bool) {
	ctx = context.WithoutCancel(ctx)
	agents := []*string{agent}
	if agent == nil {
		agents = d.beganItem(ctx, client, id)
	}
	for _, agent := range agents {
		recorded, err := d.opt.Journal.CancelEarly(ctx, client, agent, id, maxEarlyCancels)
		if err != nil {
			d.opt.Log.Error("cannot journal an early cancel", zap.String("call", id), zap.Error(err))
		}
		if recorded {
			d.cancelEarly(client, agent, id)
			cancelled = true
		}
	}
	return cancelled
}

// cancelEarly adds a journaled cancel, and cancels the calls that have arrived since it was found that none had.
func (d *Dispatcher) cancelEarly(client string, agent *string, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.calls {
		isAgent := agent == nil || c.key.Agent == *agent
		if isAgent && c.named(id) && c.client == client {
			c.Cancel("")
		}
	}
	if name := d.opt.Journal.EarlyCancelName(agent, id); !slices.Contains(d.earlyCancels[client], name) {
		d.earlyCancels.add(client, name)
	}
}

// beganItem returns the agents of a client that have begun an item, or one nil if there are none.
func (d *Dispatcher) beganItem(ctx context.Context, client, item string) (agents []*string) {
	parts, err := d.opt.Journal.Select(ctx, journal.CallQuery{ID: partID(item, 1)})
	if err != nil {
		d.opt.Log.Error("cannot find who began an item", zap.String("call", item), zap.Error(err))
	}
	for _, rec := range parts {
		if rec.Client == client && strings.Contains(rec.ArgsHash, partMark) {
			agents = append(agents, &rec.AgentID)
		}
	}
	if agents == nil {
		return []*string{nil}
	}
	return agents
}

// takeEarlyCancel removes the cancel of an answered call, unless other calls may still need it: the answer is not
// recorded, so the call may be repeated; the answer is that of another call, or of an earlier part of the cancelled
// item; or the cancel is for all agents.
func (d *Dispatcher) takeEarlyCancel(c *Call) {
	answerOfAnother := c.known != nil && (c.known.ID != c.ID || c.earlyCancel != d.earlyCancelName(c, c.ID))
	forAllAgents := c.earlyCancel == c.ID || c.earlyCancel == c.req.Item
	if c.lost != nil || answerOfAnother || forAllAgents {
		return
	}
	d.mu.Lock()
	d.earlyCancels.remove(c.client, c.earlyCancel)
	d.mu.Unlock()
	d.opt.Journal.ForgetEarlyCancel(c.client, c.earlyCancel, func(err error) {
		d.opt.Log.Warn("cannot journal the end of an early cancel", zap.String("call", c.ID), zap.Error(err))
	})
}

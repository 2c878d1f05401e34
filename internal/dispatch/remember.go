package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools"
)

// Values of approval.Verdict.Remember that write no rule.
const (
	onceOnly       = "once"
	inConversation = "conversation"
)

// Limits of the calls on which proposed rules are tried.
const (
	triedCalls = 200
	triedSince = 30 * 24 * time.Hour
)

// memory has the answers that apply to a conversation until the daemon ends.
type memory struct {
	mu      sync.Mutex
	answers map[conversation]map[string]earlier // by effect; see keyOfEffect
}

type earlier struct{ approval, person string }

const maxRemembered = 1000

func (m *memory) add(of conversation, keys []string, by earlier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers == nil || len(m.answers) >= maxRemembered {
		m.answers = make(map[conversation]map[string]earlier)
	}
	if m.answers[of] == nil || len(m.answers[of]) >= maxRemembered {
		m.answers[of] = make(map[string]earlier)
	}
	for _, key := range keys {
		m.answers[of][key] = by
	}
}

// covers reports whether the answers allow all keys, and returns the answer for the last key.
func (m *memory) covers(of conversation, keys []string) (by earlier, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if by, ok = m.answers[of][key]; !ok {
			return earlier{}, false
		}
	}
	return by, ok
}

func (c *Call) conversation() conversation {
	return conversation{c.client, c.req.AgentID, c.req.ConversationID}
}

// askedKeys returns the keys of the effects for which the policy asks. ok is false if an approval of them cannot apply
// to later calls.
func askedKeys(q question) (keys []string, ok bool) {
	p := q.rules.policy
	if p.Decide(q.effects).Always {
		return nil, false
	}
	for _, e := range q.effects {
		one := []policy.Effect{e}
		switch d := p.Decide(one); {
		case d.Action == policy.Allow:
			continue
		case d.Action != policy.Ask || d.Always:
			return nil, false
		}
		keys = append(keys, keyOfEffect(q, e))
	}
	return keys, len(keys) > 0
}

// input has the characters by which a script gives a program more than its words: input, variables and functions.
// JSON may write them with a backslash.
const input = "<|=(`$\\"

// setsVariables reports whether an effect may set variables of the commands after it.
func setsVariables(e policy.Effect) bool { return e.Kind == policy.Env || e.Kind == policy.Opaque }

// keyOfEffect returns the same key for effects that are equal in every byte. Effects that do not show all they do, such
// as writes and opaque ones, get a key that only the same call has.
func keyOfEffect(q question, e policy.Effect) string {
	c := q.call
	e.Source = ""
	text := fmt.Appendf(nil, "%#v", e) // JSON would replace bytes that are not UTF-8
	unseen := slices.Contains([]policy.Kind{policy.Opaque, policy.Write, policy.Env}, e.Kind)
	fed := e.Kind == policy.Exec && (bytes.ContainsAny(c.asked.Arguments, input) || slices.ContainsFunc(q.effects, setsVariables))
	dynamic := slices.ContainsFunc(e.Argv, func(w policy.Word) bool { return w.Dynamic })
	vague := e.Unknown || dynamic
	if unseen || fed || vague {
		text = fmt.Appendf(text, " in %s %q", c.hash, c.dir)
	}
	if e.Kind == policy.Exec {
		text = append(text, given(q.inv)...)
	}
	if c.elsewhere { // an approval for the sandbox does not apply without it
		text = append(text, " elsewhere"...)
	}
	return c.workspace.opt.Root + "\x00" + string(text)
}

// given returns what a call gives its programs besides words and environment.
func given(inv tools.Invocation) string {
	text := ""
	if f, ok := inv.(interface{ Fed() string }); ok && f.Fed() != "" {
		text = fmt.Sprintf(" with %q", f.Fed())
	}
	if inv.Traits().Input {
		text += " with input"
	}
	if inv.Traits().Background {
		text += " in the background"
	}
	return text
}

func (d *Dispatcher) remembered(q question) *message.Decision {
	keys, ok := askedKeys(q)
	if !ok {
		return nil
	}
	by, ok := d.memory.covers(q.call.conversation(), keys)
	if !ok {
		return nil
	}
	said := *q.said
	said.Action, said.By, said.Person, said.Answer = policy.Allow.String(), "remembered", by.person, by.approval
	said.Reason = fmt.Sprintf("%s said yes to the same in this conversation (%s).", by.person, by.approval)
	q.call.saw(q.effects)
	return &said
}

// special reports whether an answer changes the call that the agent sent.
func special(v approval.Verdict) bool {
	return v.Arguments != "" || v.Escalation != (approval.Escalation{})
}

// remember stores an approval for the conversation if the person or the policy requests that.
func (d *Dispatcher) remember(q question, v approval.Verdict) {
	byPolicy := v.Remember == "" && q.rules.policy.OncePerConversation() && !v.Before
	if v.Remember != inConversation && !byPolicy || special(v) {
		return
	}
	if keys, ok := askedKeys(q); ok {
		d.memory.add(q.call.conversation(), keys, earlier{q.id, v.By})
	}
}

func (c *Call) judge() *check.Judge {
	return &check.Judge{
		Policy: c.workspace.rules.Load().policy.Within(c.confinement()),
		Client: c.client, Agent: c.req.AgentID, Effects: c.workspace.effects,
	}
}

func (w *Workspace) effects(name string, arguments json.RawMessage) ([]policy.Effect, error) {
	tool, _, ok := w.opt.Registry.Lookup(name)
	if !ok || len(arguments) > longArguments {
		return nil, errors.New("not looked at")
	}
	inv, err := tool.Build(arguments)
	if err != nil {
		return nil, err
	}
	return inv.Effects(), nil
}

func (d *Dispatcher) offers(ctx context.Context, q question) []check.Offer {
	if q.call.workspace.opt.Remember() == nil {
		return nil
	}
	return q.call.judge().Offers(q.effects, d.triedHistory(ctx, q.call))
}

func (d *Dispatcher) triedHistory(ctx context.Context, c *Call) *check.History {
	h, err := History(ctx, d.opt.Journal, time.Now().Add(-triedSince), triedCalls, c.workspace.effects)
	if err != nil {
		return &check.History{}
	}
	h.Calls = slices.DeleteFunc(h.Calls, func(p check.Past) bool { return p.Hash == c.hash })
	return h
}

func suggestions(q question) []message.Suggestion {
	list := []message.Suggestion{}
	if _, ok := askedKeys(q); ok {
		list = append(list, message.Suggestion{Remember: inConversation})
	}
	for _, o := range q.offers {
		list = append(list, message.Suggestion{
			Remember: o.Scope, Changes: o.Covers, WouldAllow: textsOf(o.Allows), AllowsRefused: textsOf(o.Refused), WouldNotAllow: o.Not,
		})
	}
	return list
}

const maxTexts = 8

func textsOf(calls []check.Past) (texts []string) {
	for _, c := range calls[:min(len(calls), maxTexts)] {
		texts = append(texts, c.Text)
	}
	if more := len(calls) - maxTexts; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return texts
}

// offered returns the offer that an answer selects, or nil for none. The error says why it cannot be remembered.
func (d *Dispatcher) offered(q question, v approval.Verdict) (*check.Offer, error) {
	switch {
	case v.Remember == "" || v.Remember == onceOnly:
		return nil, nil
	case !v.Approve:
		return nil, errors.New("only a yes is remembered; a rule that denies is written into the policy file")
	case special(v):
		return nil, errors.New("a yes with other arguments or a wider sandbox counts once and makes no rule")
	case v.Remember == inConversation:
		if _, ok := askedKeys(q); !ok {
			return nil, errors.New("a yes to this call counts once: a rule asks every time")
		}
		return nil, nil
	case q.call.workspace.opt.Remember() == nil:
		return nil, errors.New("there is no policy file of your own to write a rule into")
	case v.Remember == "rule":
		o, err := q.call.judge().Offer(v.Pattern, q.effects, &check.History{})
		return &o, err
	}
	if i := slices.IndexFunc(q.offers, func(o check.Offer) bool { return o.Scope == v.Remember }); i >= 0 {
		return &q.offers[i], nil
	}
	return nil, fmt.Errorf("no rule for this %s lets the call run", v.Remember)
}

func (d *Dispatcher) writeRule(q question, v approval.Verdict) (changes []string, err error) {
	o, err := d.offered(q, v)
	if err != nil || o == nil {
		return nil, err
	}
	remember := q.call.workspace.opt.Remember()
	if remember == nil {
		return nil, errors.New("the policy file of your own is gone")
	}
	for _, c := range o.Changes {
		changes = append(changes, c.Text(q.rules.policy.User().Name))
	}
	return changes, remember(o.Changes, v.By, q.call.ID)
}

package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// Offer is a way to remember an approval in the user's policy file. The changed policy allows the call.
type Offer struct {
	Scope   string // "command", "prefix" (the same first words), or "rule" (a person's pattern)
	Covers  []string
	Changes []policy.Change

	Allows  []Past   // other recorded calls that it would allow
	Refused []Past   // other recorded calls that it would allow although a person refused them
	Not     []string // similar commands that it does not allow
}

// Offers returns the ways to remember the approval of a call. There are none if a rule asks every time, if a built-in
// rule or another file asks, or if no rule can name the effects.
func (j *Judge) Offers(effects []policy.Effect, h *History) (list []Offer) {
	for _, scope := range []string{"command", "prefix"} {
		o, err := j.offer(scope, "", effects, h)
		same := len(list) > 0 && slices.EqualFunc(o.Changes, list[0].Changes, sameChange)
		if err == nil && !same {
			list = append(list, o)
		}
	}
	return list
}

// Offer returns the way to remember an approval by a person's command pattern. The error says why the pattern does not
// allow the call.
func (j *Judge) Offer(pattern string, effects []policy.Effect, h *History) (Offer, error) {
	return j.offer("rule", pattern, effects, h)
}

func (j *Judge) offer(scope, pattern string, effects []policy.Effect, h *History) (Offer, error) {
	needs, err := j.needs(effects)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{Scope: scope}
	for _, n := range needs {
		c := covering(n, scope, pattern)
		if !slices.ContainsFunc(o.Changes, func(k policy.Change) bool { return sameChange(k, c) }) {
			o.Changes = append(o.Changes, c)
		}
	}
	if _, err := j.With(o.Changes...); err != nil {
		return Offer{}, err
	}
	if !j.proves(&o, needs, effects, h) {
		return Offer{}, fmt.Errorf("with a rule for %q the call would still be asked", pattern)
	}
	return o, nil
}

func (j *Judge) needs(effects []policy.Effect) ([]policy.Obstacle, error) {
	if d := j.Decide(effects); d.Action != policy.Ask || d.Always {
		return nil, fmt.Errorf("rule %q asks every time, or does not ask", d.Rule)
	}
	m := j.Missing(effects)
	if !m.Proved {
		return nil, errors.New("no change of your policy file lets this call run unasked")
	}
	for _, o := range m.Obstacles {
		if o.Always || o.Action == policy.Deny && o.Change.Section == "except" {
			return nil, fmt.Errorf("rule %q cannot be answered for later calls", o.Rule)
		}
		if err := broad(o); err != nil {
			return nil, err
		}
	}
	return m.Obstacles, nil
}

// broad returns why a change would allow more than the call, or nil.
func broad(o policy.Obstacle) error {
	c := o.Change
	switch {
	case c.Rule.ID == "" && c.Section != "except" && c.Section != "env.allow":
		return fmt.Errorf("%s asks, which is not taken away for one call", o.Rule)
	case c.Section == "env.allow" && policy.IsDangerousEnv(o.Effect.Name), o.Rule == "defaults.unanalysable":
		return errors.New("what cannot be followed is asked each time")
	case o.Effect.Kind == policy.Exec && strings.Contains(strings.Join(slices.Concat(c.Rule.Run, c.Texts), " "), "*"):
		return errors.New("a part of the command is known only when it runs, or no pattern has it word for word")
	}
	return nil
}

func covering(n policy.Obstacle, scope, pattern string) policy.Change {
	c := n.Change
	if n.Effect.Kind != policy.Exec || scope == "command" {
		return c
	}
	if scope == "prefix" {
		pattern = prefix(n.Effect.Argv)
	}
	switch {
	case pattern == "":
	case c.Section == "commands":
		c.Rule.Run, c.Rule.PermitFlags = []string{pattern}, nil
	case c.Section == "except":
		c.Texts = []string{pattern}
	}
	return c
}

const maxPrefix = 3

// prefix returns the pattern for commands that begin alike, or "" for programs that run their arguments.
func prefix(argv []policy.Word) string {
	if len(argv) == 0 || programs.Find(argv[0].Text).RunsAnything() {
		return ""
	}
	var words []string
	for i, w := range argv {
		plain := w.Text != "" && !w.Dynamic && !strings.ContainsAny(w.Text, " \t\r\n'\"\\#;|&<>()$`*{}")
		operand := i > 0 && strings.ContainsAny(w.Text, "-./:=@~0123456789")
		if !plain || operand || i == maxPrefix {
			break
		}
		words = append(words, w.Text)
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(append(words, "**"), " ")
}

func (j *Judge) proves(o *Offer, needs []policy.Obstacle, effects []policy.Effect, h *History) bool {
	next, err := j.With(o.Changes...)
	if err != nil || next.Decide(effects).Action != policy.Allow {
		return false
	}
	for _, c := range o.Changes {
		o.Covers = append(o.Covers, c.Text(j.Policy.User().Name))
	}
	for _, c := range h.Calls {
		before, after := c.decidedBy(j.Policy), c.decidedBy(next.Policy)
		switch {
		case before.Action == after.Action:
		case c.Refused:
			o.Refused = append(o.Refused, c)
		default:
			o.Allows = append(o.Allows, c)
		}
	}
	for _, n := range needs {
		o.Not = append(o.Not, next.near(n.Effect)...)
	}
	o.Not = o.Not[:min(len(o.Not), maxNear)]
	return true
}

const maxNear = 4

func (j *Judge) near(e policy.Effect) (list []string) {
	if e.Kind != policy.Exec || len(e.Argv) == 0 {
		return nil
	}
	texts := make([]string, len(e.Argv))
	for i, w := range e.Argv {
		texts[i] = w.Text
	}
	last := len(texts) - 1
	variants := [][]string{append(slices.Clone(texts), "other"), append(slices.Clone(texts), "--force")}
	if last > 0 {
		variants = append(variants, append(slices.Clone(texts[:last]), "other"), []string{texts[0], "other"})
	}
	for _, v := range append(variants, append([]string{"sudo"}, texts...)) {
		one := e
		one.Argv, one.Possible = programs.Words(v), false
		if text := strings.Join(v, " "); j.Decide([]policy.Effect{one}).Action != policy.Allow && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

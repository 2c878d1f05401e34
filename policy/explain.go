package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/toold/toold/internal/redact"
)

const maxShown = 120 // characters of an effect in a reason

// explain returns the decision for an effect: its rule or default, the reason in words, and the next step.
func (p *Policy) explain(e Effect, v verdict) Decision {
	d := Decision{Action: v.action, Rule: v.id, Source: cmp.Or(p.origin(v.id), "built-in"), Effect: e}
	if v.rule != nil {
		d.Rule, d.Source = v.rule.ID, v.rule.source
	}
	what, why := described(e), v.because(e)
	if v.action == Allow {
		d.Reason = fmt.Sprintf("It may %s.", what)
		if e.Kind == Exec && len(e.Argv) == 1 && e.Argv[0].Text == ":" {
			d.Reason = "It runs no program and names no file."
		}
		return d
	}
	mayApply := v.rule != nil && v.rule.Action < v.action
	switch {
	case e.Kind == Opaque:
		d.Reason = fmt.Sprintf("The command cannot be analysed, because %s.", shorten(e.Why))
	case mayApply && e.Tree: // the rule applies to a part of the tree
		d.Reason = fmt.Sprintf("It would %s and all in it, and rule %q denies part of that%s. Search a narrower directory, or files of some names, to avoid the question.", what, v.rule.ID, why)
	case mayApply: // a word or the host is unknown
		d.Reason = fmt.Sprintf("It would %s, which may be what rule %q denies%s.", what, v.rule.ID, why)
	case v.rule != nil && v.action == Ask:
		d.Reason = fmt.Sprintf("It would %s%s.", what, why)
	case v.rule != nil:
		d.Reason = fmt.Sprintf("It must not %s%s.", what, why)
	default:
		d.Reason = fmt.Sprintf("No rule allows to %s%s.", what, p.butFor(e))
	}
	p.nextStep(&d, v)
	return d
}

// because returns the reason of the rule after a colon, or "" if it has none.
func (v verdict) because(e Effect) string {
	if v.rule == nil {
		return ""
	}
	reason := v.rule.Reason
	if reason == "" && len(v.rule.Classes) > 0 {
		reason = classesOf(e).why(v.rule)
	}
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// origin returns the position in a policy file that sets a default or preset, or "".
func (p *Policy) origin(id string) string {
	if id == "env.dangerous" { // the same default decides
		id = "env.unknown"
	}
	return p.origins[id]
}

// nextStep appends to the reason what to do next. Where nobody can be asked, it turns Ask into Deny.
func (p *Policy) nextStep(d *Decision, v verdict) {
	switch {
	case d.Action == Ask && p.headless:
		d.Action = Deny
		d.Reason += " Nobody can be asked here: do it another way, or leave it out."
	case d.Action == Ask:
		d.Reason += personDecides
	case d.Effect.Kind == Opaque:
		d.Reason += " Write the command in plain steps."
	case v.rule != nil:
		d.Reason += " Do not try another spelling: ask the user to do it, or leave it out."
	default:
		d.Reason += " Use what the policy allows, or ask the user to add a rule."
	}
}

const personDecides = " A person decides."

// WithoutAsking removes the sentence about the person who decides from a reason.
func WithoutAsking(reason string) string { return strings.Replace(reason, personDecides, "", 1) }

// described words an effect so that it follows "It may".
func described(e Effect) string {
	if e.Kind == Opaque {
		return "run what cannot be analysed, because " + shorten(e.Why)
	}
	text := shorten(e.String())
	command, ok := strings.CutPrefix(text, "run ")
	if e.Kind != Exec || !ok {
		return text
	}
	if strings.Contains(command, "`") {
		return "run `` " + command + " ``"
	}
	return "run `" + command + "`"
}

// shorten returns s without control characters, and at most maxShown characters of it: a secret is not cut in two.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '␣'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxShown {
		return redact.Beginning(s, len(string(r[:maxShown]))) + "…"
	}
	return s
}

package policy

import (
	"fmt"
	"strings"
)

// maxShown bounds how much of a command stands in a reason.
const maxShown = 120

// explain turns a verdict into a decision that people and models can act on.
func (p *Policy) explain(e Effect, v verdict) Decision {
	d := Decision{Action: v.action, Rule: v.id, Source: p.origin(v.id), Effect: e}
	if v.rule != nil {
		d.Rule, d.Source = v.rule.ID, v.rule.source
	}
	if d.Source == "" {
		d.Source = "built-in"
	}
	what := shorten(e.String())
	switch {
	case v.action == Allow:
		d.Reason = fmt.Sprintf("%s allows to %s.", title(d.Rule, v.rule), what)
		return d
	case e.Kind == Opaque:
		d.Reason = fmt.Sprintf("%s: the command cannot be analysed, because %s.", d.Rule, shorten(e.Why))
		d.Change = "write the command so that its programs and files stand in it literally"
	case v.rule != nil:
		d.Reason = fmt.Sprintf("%s %s to %s%s.", title(d.Rule, v.rule), verb(v.action), what, because(v.rule.Reason))
		d.Change = fmt.Sprintf("an exception in rule %q (%s)", d.Rule, d.Source)
	default:
		d.Reason = fmt.Sprintf("No rule allows to %s, and %s is %s.", what, d.Rule, v.action)
		d.Change = suggestion(e, v)
		if blocked, found, _ := p.blocking(e); found {
			d.Change += fmt.Sprintf(", and an exception in rule %q", blocked.rule.ID)
		}
	}
	p.nextStep(&d, v)
	return d
}

// origin tells where a default stands, in the file that settled it.
func (p *Policy) origin(id string) string {
	if id == "env.dangerous" {
		id = "env.unknown"
	}
	return p.origins[id]
}

// nextStep ends the reason with one thing to do, and applies headless mode.
func (p *Policy) nextStep(d *Decision, v verdict) {
	switch {
	case d.Action == Ask && p.headless:
		d.Action = Deny
		d.Reason += " Nobody can be asked here: do it another way, or leave it out."
	case d.Action == Ask:
		d.Reason += " A person decides."
	case d.Effect.Kind == Opaque:
		d.Reason += " Write the command in plain steps."
	case v.rule != nil:
		d.Reason += " Do not try another spelling: ask the user to do it, or leave it out."
	default:
		d.Reason += " Use what the policy allows, or ask the user to add a rule."
	}
}

// title names a rule, a preset or a default at the beginning of a sentence.
func title(id string, r *rule) string {
	if r == nil {
		return id
	}
	return fmt.Sprintf("Rule %q", id)
}

func verb(a Action) string {
	if a == Ask {
		return "asks a person before it allows"
	}
	return "denies"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// suggestion is the smallest rule that would allow the effect.
func suggestion(e Effect, v verdict) string {
	switch {
	case e.Kind == Exec && v.id != "defaults.unanalysable":
		if command, ok := literalCommand(e.Argv); ok {
			return fmt.Sprintf("a rule in commands: {decision: allow, run: [%q]}", command)
		}
		return "a rule in commands that allows " + shorten(baseName(e.Argv[0].Text))
	case (e.Kind == Read || e.Kind == Write) && !e.Unknown && e.Canonical != "":
		if strings.ContainsAny(e.Canonical, "{}") {
			return "a rule in paths that allows it" // braces in a pattern are alternatives
		}
		path := escapeMeta(e.Canonical)
		if e.Tree {
			path = strings.TrimSuffix(path, "/") + "/**"
		}
		return fmt.Sprintf("a rule in paths: {decision: allow, ops: [%s], match: [%q]}", e.Kind, path)
	case e.Kind == Net && e.Host != "":
		return fmt.Sprintf("a rule in net: {decision: allow, hosts: [%q]}", e.Host)
	case e.Kind == Env && e.Name != "":
		return fmt.Sprintf("env: {allow: [%s]}", e.Name)
	}
	return v.id
}

// literalCommand returns a command as a pattern that matches just it. ok is false
// where that takes more than its words, or would be too long to read.
func literalCommand(argv []Word) (command string, ok bool) {
	words := make([]string, len(argv))
	for i, w := range argv {
		if w.Dynamic || w.Text == "" || strings.ContainsAny(w.Text, " \t\n'\"\\*{}|&;<>()$`#") {
			return "", false
		}
		words[i] = w.Text
	}
	command = strings.Join(words, " ")
	if strings.Contains(words[0], "..") {
		return "", false // a pattern never goes up
	}
	return command, command == shorten(command)
}

// shorten keeps a text to one readable line.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '␣'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return s
}

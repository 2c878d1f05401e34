package policy

import (
	"maps"
	"slices"
	"strings"
)

// An edit is one change of one policy file. Which fields are set depends on key.
type edit struct {
	file  string   // the file's name; "" = the user's
	key   string   // "commands", "paths", "net": a new rule; "except", "permit_flags", "builtin.disable", "env.allow", "mode", or a default's name
	rule  Rule     // new
	at    *rule    // that gets exceptions or flags, or is switched off
	texts []string // exceptions, flags, or a variable's name
	value Action   // of a default
}

// maxEdits bounds what a change is made of: one that takes more is no small one.
const maxEdits = 6

// maxTried bounds the commands for which a change is looked for, in bytes: trying
// one costs several decisions, and the text may be chosen to make them slow.
const maxTried = 4 << 10

// size is how long a command is, about.
func size(argv []Word) (n int) {
	for _, w := range argv {
		n += len(w.Text) + 1
	}
	return n
}

// change is the smallest change of the files that makes the verdict on an effect
// more permissive, and what the effect gets with it. It was made and tried: without
// ok none was found. v is the verdict that holds.
func (p *Policy) change(e Effect, v verdict) (edits []edit, becomes Action, ok bool) {
	was := p.inMode(v.action)
	if size(e.Argv) > maxTried {
		return nil, was, false
	}
	tried := p
	for range maxEdits {
		next, possible := tried.mend(e, v)
		if !possible {
			return nil, was, false
		}
		if tried = tried.with(next); tried == nil {
			return nil, was, false
		}
		edits = append(edits, next)
		v = tried.judge(e)
		if becomes = tried.inMode(v.action); becomes > was {
			return joined(edits), becomes, true
		}
	}
	return nil, was, false
}

// inMode is what an action comes to where nobody can be asked.
func (p *Policy) inMode(a Action) Action {
	if a == Ask && p.headless {
		return Deny
	}
	return a
}

// mend returns the edit that takes away what decides an effect.
func (p *Policy) mend(e Effect, v verdict) (edit, bool) {
	switch {
	case v.rule != nil && v.rule.file == "":
		return edit{key: "builtin.disable", at: v.rule, texts: []string{v.rule.ID}}, true
	case v.rule != nil:
		texts := p.concerned(e, v.rule)
		return edit{file: v.rule.file, key: "except", at: v.rule, texts: texts}, len(texts) > 0
	case e.Kind == Exec && len(e.Argv) > 0 && !e.Argv[0].Dynamic:
		if ed, ok := p.permitting(e); ok {
			return ed, true
		}
		r, ok := allowingCommand(e)
		return edit{key: "commands", rule: p.titled(r, e)}, ok
	case (e.Kind == Read || e.Kind == Write) && !e.Unknown && e.Canonical != "":
		r := Rule{Action: Allow, Ops: []Kind{e.Kind}, Paths: []string{literalGlob(e.Canonical, e.Tree)}}
		return edit{key: "paths", rule: p.titled(r, e)}, true
	case e.Kind == Net && e.Host != "":
		return edit{key: "net", rule: p.titled(allowingHost(e), e)}, true
	case e.Kind == Env && e.Name != "":
		return edit{key: "env.allow", texts: []string{e.Name}}, true
	}
	return p.loosen(v)
}

// loosen returns the edit of what decides where no rule can: a default, or the
// mode. It goes no further than to what has an effect.
func (p *Policy) loosen(v verdict) (edit, bool) {
	id := v.id
	if id == "env.dangerous" {
		id = "env.unknown"
	}
	limit := Allow
	if id == "defaults.unanalysable" || v.id == "env.dangerous" {
		limit = Ask
	}
	to := v.action + 1
	if to == Ask && p.headless && limit == Allow {
		to = Allow
	}
	if to <= limit {
		return edit{file: p.settledBy(id, v.action), key: id, value: to}, p.defaults.named(id) != nil
	}
	for _, f := range p.files {
		if f.Headless {
			return edit{file: f.Name, key: "mode"}, true
		}
	}
	return edit{}, false
}

// settledBy returns the file whose word makes a default as strict as it is.
func (p *Policy) settledBy(id string, as Action) string {
	for _, f := range p.files {
		if d := f.Defaults.named(id); d != nil && *d <= as {
			return f.Name
		}
	}
	return ""
}

// concerned returns exceptions that take an effect out of a rule.
func (p *Policy) concerned(e Effect, r *rule) (texts []string) {
	switch e.Kind {
	case Exec:
		p.blockingCommands(e, func(by *rule, argv []Word) {
			if text, ok := patternOf(argv); ok && by == r && len(texts) == 0 {
				texts = append(texts, text)
			}
		})
	case Read, Write:
		for _, form := range [...]string{e.Path, e.Canonical} {
			one := e
			one.Path, one.Canonical = form, form
			if _, _, ok := r.blocksPath(one); ok && form != "" {
				texts = append(texts, literalGlob(form, e.Tree))
			}
		}
	case Net:
		texts = append(texts, e.Host)
	}
	return slices.Compact(texts)
}

// with returns the policy with an edit made, for judging effects only; nil when
// what the edit says is not valid.
func (p *Policy) with(ed edit) *Policy {
	next := *p
	added := newRuleSet()
	c := compiler{set: added, policy: &Policy{options: p.options, ids: make(map[string]bool), foldAllowing: p.foldAllowing, foldBlocking: p.foldBlocking}}
	c.file = p.files[0].Name
	switch ed.key {
	case "commands":
		c.rules([]Rule{ed.rule}, c.command)
	case "paths":
		c.rules([]Rule{ed.rule}, c.path)
	case "net":
		c.rules([]Rule{ed.rule}, c.network)
	case "except":
		next.replace(ed.at, c.excepting(ed.at, ed.texts))
	case "permit_flags":
		permitting := *ed.at
		permitting.PermitFlags = append(slices.Clip(ed.at.PermitFlags), ed.texts...)
		next.replace(ed.at, &permitting)
	case "builtin.disable":
		next.replace(ed.at, nil)
	case "env.allow":
		added.variables(ed.texts)
	default:
		next.setting(ed)
	}
	added.sort()
	next.sets = append(slices.Clip(p.sets), added)
	if len(c.errs) > 0 {
		return nil
	}
	return &next
}

// excepting returns a rule with more exceptions.
func (c *compiler) excepting(r *rule, texts []string) *rule {
	out := *r
	out.Except = append(slices.Clip(r.Except), texts...)
	switch {
	case len(r.Run) > 0:
		for _, text := range texts {
			if pat, ok := c.pattern(r.Rule, text); ok {
				out.not = append(slices.Clip(out.not), pat)
			}
		}
	case len(r.Paths) > 0:
		out.except = c.exceptions(out.Rule)
	default:
		out.Except = c.hosts(r.Rule, out.Except)
	}
	return &out
}

// replace puts a rule in the place of another, or nothing.
func (p *Policy) replace(old, by *rule) {
	p.changed = maps.Clone(p.changed)
	if p.changed == nil {
		p.changed = make(map[*rule]*rule)
	}
	p.changed[old] = by
}

// setting changes a default, or the mode, of one file.
func (p *Policy) setting(ed edit) {
	p.files = slices.Clone(p.files)
	for i := range p.files {
		if p.files[i].Name != ed.file {
			continue
		}
		if ed.key == "mode" {
			p.files[i].Headless = false
		} else {
			*p.files[i].Defaults.named(ed.key) = ed.value
		}
	}
	p.origins = make(map[string]string)
	p.settle()
}

// literalGlob is a pattern of one path, and of all that is below it for a tree.
func literalGlob(path string, tree bool) string {
	path = escapeMeta(path)
	if tree {
		return strings.TrimSuffix(path, "/") + "/**"
	}
	return path
}

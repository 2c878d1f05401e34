package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Obstacle is a reason why an effect is not allowed.
type Obstacle struct {
	Effect Effect
	Action Action
	Rule   string // id of the rule or default
	Source string // "file:line", or "built-in"
	Always bool
	Change Change // change that removes the obstacle; zero if there is none
	Why    string // why there is no such change
}

// Change is one edit of one policy file.
type Change struct {
	File string
	// Section is "commands", "paths" or "net", to which Rule is added; "except", for the exceptions of rule At, or
	// "builtin.disable" or "env.allow", to which Texts are added; or a default that becomes allow.
	Section string
	Rule    Rule
	At      string
	Texts   []string
}

// Obstacles returns why effects are not allowed; nothing if Decide allows them or if there are none. If a rule matches
// in several ways, there may be other obstacles after the changes.
func (p *Policy) Obstacles(effects []Effect) []Obstacle {
	var all []Obstacle
	for _, e := range p.withHosts(effects) {
		if p.judge(&e).action != Allow {
			all = append(all, p.obstacles(e)...)
		}
	}
	return all
}

func (p *Policy) obstacles(e Effect) (list []Obstacle) {
	if e.Kind == Opaque {
		return []Obstacle{p.unmet(e, p.judge(&e))}
	}
	var against []*rule
	for _, m := range p.matches(e) {
		if !slices.Contains(against, m.rule) {
			against = append(against, m.rule)
		}
	}
	for _, r := range against {
		o := Obstacle{Effect: e, Action: r.Action, Rule: r.ID, Source: r.source, Always: r.Always}
		texts := p.concerned(e, r)
		switch {
		case r.file == "":
			o.Change = Change{File: p.files[0].Name, Section: "builtin.disable", Texts: []string{r.ID}}
		case len(texts) > 0:
			o.Change = Change{File: r.file, Section: "except", At: r.ID, Texts: texts}
		default:
			o.Why = "no narrow exception names it"
		}
		list = append(list, o)
	}
	if v := p.unblocked(e); v.action != Allow {
		list = append(list, p.unmet(e, v))
	}
	return list
}

func (p *Policy) unmet(e Effect, v verdict) Obstacle {
	o := Obstacle{Effect: e, Action: v.action, Rule: v.id, Source: p.origin(v.id)}
	if c, ok := p.narrowest(e); ok {
		o.Change = c
		return o
	}
	for _, f := range p.files {
		if d := f.Defaults.named(v.id); nameless(e) && d != nil && *d < Allow {
			o.Change = Change{File: f.Name, Section: v.id}
			return o
		}
	}
	o.Why = p.whyNone(e)
	return o
}

// nameless reports whether only a default can allow an effect, since its path or host is unknown.
func nameless(e Effect) bool {
	switch e.Kind {
	case Read, Write:
		return e.Unknown || e.Canonical == ""
	case Net:
		return e.Host == ""
	}
	return false
}

func (p *Policy) concerned(e Effect, r *rule) (texts []string) {
	switch e.Kind {
	case Exec:
		for _, m := range p.blockingCommands(e) {
			if text, ok := patternOf(m.argv); ok && m.rule == r {
				texts = append(texts, text)
			}
		}
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

func (p *Policy) whyNone(e Effect) string {
	switch {
	case e.Kind == Opaque, e.Kind == Exec && (len(e.Argv) == 0 || e.Argv[0].Dynamic):
		return "what cannot be analysed is never allowed; write the command so that its programs and files are literal words"
	case e.Kind == Exec && programs.Parse(e.Argv).Code:
		return "no rule names code that is in the command; put the code into a file and allow that"
	case e.Kind == Exec:
		return "no narrow rule names this command; write it with fewer and literal words"
	case e.Kind == Env:
		return "a variable whose name is not known beforehand is never allowed; name it"
	}
	return "no narrow rule names it"
}

// With returns a copy of the file with a change.
func (f File) With(c Change) File {
	switch c.Section {
	case "commands":
		f.Commands = append(slices.Clip(f.Commands), c.Rule)
	case "paths":
		f.Paths = append(slices.Clip(f.Paths), c.Rule)
	case "net":
		f.Net = append(slices.Clip(f.Net), c.Rule)
	case "env.allow":
		f.Env = append(slices.Clip(f.Env), c.Texts...)
	case "builtin.disable":
		f.Disable = append(slices.Clip(f.Disable), c.Texts...)
	case "except":
		f.Commands, f.Paths, f.Net = excepting(f.Commands, c), excepting(f.Paths, c), excepting(f.Net, c)
	default:
		if to := f.Defaults.named(c.Section); to != nil {
			*to = Allow
		}
	}
	return f
}

func excepting(rules []Rule, c Change) []Rule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		if r.ID == c.At {
			rules[i].Except = append(slices.Clip(r.Except), c.Texts...)
		}
	}
	return rules
}

// Text describes the change in words. It omits the file's name if it is user, the name of the user's file.
func (c Change) Text(user string) string {
	in := ""
	if c.File != user && user != "" {
		in = " in " + c.File
	}
	section, key, _ := strings.Cut(c.Section, ".")
	switch c.Section {
	case "commands", "paths", "net":
		return fmt.Sprintf("under %s: %s", c.Section, c.Rule.String())
	case "except":
		return fmt.Sprintf("an exception in rule %q: except: %s%s", c.At, listText(c.Texts), in)
	case "builtin.disable":
		return fmt.Sprintf("builtin: {disable: %s}, which takes the whole of a built-in rule away", listText(c.Texts))
	case "env.allow":
		return fmt.Sprintf("env: {allow: %s}", listText(c.Texts))
	}
	return fmt.Sprintf("%s: {%s: allow}%s", section, key, in)
}

// String formats the rule as in a policy file, on one line.
func (r Rule) String() string {
	keys := []string{"id: " + r.ID, "decision: " + r.Action.String()}
	list := func(key string, texts []string) {
		if len(texts) > 0 {
			keys = append(keys, key+": "+listText(texts))
		}
	}
	list("run", r.Run)
	list("require_flags", r.RequireFlags)
	list("permit_flags", r.PermitFlags)
	list("cwd", r.Dirs)
	if len(r.Ops) == 1 {
		keys = append(keys, "ops: ["+r.Ops[0].String()+"]")
	}
	list("match", r.Paths)
	list("hosts", r.Hosts)
	if len(r.Ports) > 0 {
		keys = append(keys, fmt.Sprintf("ports: [%d]", r.Ports[0]))
	}
	list("schemes", r.Schemes)
	return "{" + strings.Join(keys, ", ") + "}"
}

func listText(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

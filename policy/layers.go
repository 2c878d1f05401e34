package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	presetReadOnly  = "shell-readonly"
	presetWorkspace = "shell-workspace"
)

// Compile returns the policy of the built-in rules and all files. Further files can only tighten: what loosens in them
// is ignored and listed by Warnings. The error joins all *Faults.
func Compile(o Options, user File, further ...File) (*Policy, error) {
	p := &Policy{
		options: o, title: cmp.Or(user.Title, user.Name), files: []File{user}, origins: make(map[string]string),
		sets: []*ruleSet{newRuleSet()}, ids: make(map[string]bool), further: further,
	}
	disabled := slices.Clone(user.Disable)
	if o.Administrator != nil {
		p.files = append(p.files, *o.Administrator)
		disabled = append(disabled, o.Administrator.Disable...)
	}
	p.files = append(p.files, further...)
	p.settle()
	c := compiler{policy: p, set: p.sets[0]}
	// A file that can only tighten makes ask and deny rules fold case.
	p.foldAllowing = user.FoldCase || o.Administrator != nil && o.Administrator.FoldCase
	p.foldBlocking = p.foldAllowing || slices.ContainsFunc(further, func(f File) bool { return f.FoldCase })
	c.builtin(disabled)
	c.file = user.Name
	c.layer(user)
	if o.Administrator != nil {
		c.file = o.Administrator.Name
		c.overruled(*o.Administrator)
		c.layer(*o.Administrator)
	}
	for _, f := range further {
		c.tighten(f)
	}
	for _, f := range p.files {
		c.clients(f.Clients)
	}
	return p, errors.Join(c.errs...)
}

// User returns the user's file.
func (p *Policy) User() File { return p.files[0] }

// Options returns the options of Compile.
func (p *Policy) Options() Options { return p.options }

// With compiles the policy again with another file of the user. The error is that of Compile.
func (p *Policy) With(user File) (*Policy, error) {
	next, err := Compile(p.options, user, p.further...)
	next.confinement = p.confinement
	return next, err
}

// Name returns the title of the user's file, or its path.
func (p *Policy) Name() string { return p.title }

// Warnings lists what Compile ignored because it loosens the policy.
func (p *Policy) Warnings() []string { return p.warnings }

func (c *compiler) builtin(disabled []string) {
	commands, paths := builtinRules(c.policy.options)
	for _, r := range commands {
		if c.ids = append(c.ids, r.ID); !slices.Contains(disabled, r.ID) {
			c.command(r)
		}
	}
	for _, r := range paths {
		c.ids = append(c.ids, r.ID)
		r.Paths = slices.DeleteFunc(slices.Clone(r.Paths), func(path string) bool { // without placeholders that have no value
			return strings.Contains(expandPlaces(path, c.policy.options), "${")
		})
		if len(r.Paths) > 0 && !slices.Contains(disabled, r.ID) {
			c.path(r)
		}
	}
}

// layer adds a file that may allow.
func (c *compiler) layer(f File) {
	if f.Defaults.Unanalysable == Allow {
		c.fault("defaults.unanalysable", "", "what cannot be analysed is never allowed: expected ask or deny")
	}
	for _, id := range f.Disable {
		if !slices.Contains(c.ids, id) {
			c.fault("builtin.disable", id, "no built-in rule has the id %q: expected one of %s", id, strings.Join(c.ids, ", "))
		}
	}
	if len(f.Env) > 0 {
		c.policy.origins["env.allow"] = where(c.file, 0)
	}
	for _, name := range f.Presets {
		c.policy.origins["presets"] = where(c.file, 0)
		switch name {
		case presetReadOnly:
			c.policy.readOnly = true
		case presetWorkspace:
			c.policy.workspace = true
		default:
			c.fault("presets", name, "unknown preset %q: expected %s or %s", name, presetReadOnly, presetWorkspace)
		}
	}
	c.set.variables(f.Env)
	c.all(f)
}

func (c *compiler) all(f File) {
	c.rules(f.Commands, c.command)
	c.rules(f.Paths, c.path)
	c.rules(f.Net, c.network)
}

// tighten adds a file that must not loosen.
func (c *compiler) tighten(f File) {
	c.file, c.tightens = f.Name, true
	c.overruled(f)
	c.warnIf(len(f.Presets) > 0, "presets", 0)
	c.warnIf(len(f.Env) > 0, "env.allow", 0)
	c.warnIf(len(f.Disable) > 0, "builtin.disable", 0)
	c.warnIf(f.OncePer != "", "ask.once_per", 0)
	c.all(f)
}

type namedDefault struct {
	name   string
	action *Action
}

func (d *Defaults) list() []namedDefault {
	return []namedDefault{
		{"defaults.bash", &d.Bash},
		{"defaults.read", &d.Read},
		{"defaults.write", &d.Write},
		{"defaults.net", &d.Net},
		{"defaults.unanalysable", &d.Unanalysable},
		{"unknown_paths.read", &d.UnknownRead},
		{"unknown_paths.write", &d.UnknownWrite},
		{"env.unknown", &d.UnknownEnv},
		{confinedDefault, &d.Confined},
	}
}

func (d *Defaults) named(name string) *Action {
	for _, one := range d.list() {
		if one.name == name {
			return one.action
		}
	}
	return nil
}

// settle sets each default to the strictest of all files, and applies their settings for approvals.
func (p *Policy) settle() {
	user := p.files[0]
	p.defaults, p.headless, p.timeout = user.Defaults, user.Headless, user.AskTimeout
	settled := p.defaults.list()
	for _, to := range settled {
		p.origins[to.name] = where(user.Name, user.Lines[to.name])
	}
	for _, f := range p.files[1:] {
		p.headless = p.headless || f.Headless
		if f.AskTimeout > 0 && (p.timeout == 0 || f.AskTimeout < p.timeout) {
			p.timeout = f.AskTimeout
		}
		for i, from := range f.Defaults.list() {
			if to := settled[i]; *from.action < *to.action {
				*to.action, p.origins[to.name] = *from.action, where(f.Name, f.Lines[to.name])
			}
		}
	}
}

func (c *compiler) overruled(f File) {
	settled := c.policy.defaults.list()
	for i, from := range f.Defaults.list() {
		line, named := f.Lines[from.name]
		c.warnIf(named && *from.action > *settled[i].action, from.name+": "+from.action.String(), line)
	}
}

func (c *compiler) warnIf(loosens bool, what string, line int) {
	if loosens {
		c.policy.warnings = append(c.policy.warnings, fmt.Sprintf("%s: %s has no effect: it is more permissive than the policy, which this file can only tighten", where(c.file, line), what))
	}
}

// OncePerConversation reports whether an approval counts for equal effects in the whole conversation.
func (p *Policy) OncePerConversation() bool { return p.files[0].OncePer == "conversation" }

// AskTimeout returns how long an approval may take; 0: as configured.
func (p *Policy) AskTimeout() time.Duration { return p.timeout }

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The names of the presets.
const (
	presetReadOnly  = "shell-readonly"
	presetWorkspace = "shell-workspace"
)

// Compile makes a policy of the built-in rules, the administrator's file, the
// user's file and further files. The rules of all are one set. Further files can
// only tighten: what loosens in them is left out and named in Warnings. The
// error joins a *Fault for every fault found.
func Compile(o Options, user File, further ...File) (*Policy, error) {
	p := &Policy{
		title: user.Title, headless: user.Headless, defaults: user.Defaults, origins: make(map[string]string),
		timeout: user.AskTimeout, byName: make(map[string][]commandPattern),
	}
	if p.title == "" {
		p.title = user.Name
	}
	c := compiler{options: o, policy: p}
	c.folding(user, further)
	disabled := slices.Clone(user.Disable)
	if o.Administrator != nil {
		disabled = append(disabled, o.Administrator.Disable...)
	}
	c.builtin(disabled)
	c.file = user.Name
	for _, name := range defaultNames {
		c.origin(user, name)
	}
	c.layer(user)
	if o.Administrator != nil {
		c.file = o.Administrator.Name
		c.ceilings(*o.Administrator)
		c.layer(*o.Administrator)
	}
	for _, f := range further {
		c.tighten(f)
	}
	return p, errors.Join(c.errs...)
}

// folding finds out which rules take names that differ in case for one. A file
// that can only tighten makes the asking and denying ones do so.
func (c *compiler) folding(user File, further []File) {
	c.foldAllowing = user.FoldCase || c.options.Administrator != nil && c.options.Administrator.FoldCase
	c.foldBlocking = c.foldAllowing
	for _, f := range further {
		c.foldBlocking = c.foldBlocking || f.FoldCase
	}
}

// Name returns the name that the user's file gives itself, or its path.
func (p *Policy) Name() string { return p.title }

// Warnings lists what Compile left out because it would have loosened.
func (p *Policy) Warnings() []string { return p.warnings }

// builtin adds the built-in rules that are not switched off.
func (c *compiler) builtin(disabled []string) {
	commands, paths := builtinRules(c.options)
	for _, r := range commands {
		if c.ids = append(c.ids, r.ID); !slices.Contains(disabled, r.ID) {
			c.command(r)
		}
	}
	for _, r := range paths {
		if c.ids = append(c.ids, r.ID); !slices.Contains(disabled, r.ID) {
			c.path(c.known(r))
		}
	}
}

// known leaves out the patterns of a built-in rule that refer to a place that
// is not known here.
func (c *compiler) known(r Rule) Rule {
	var paths []string
	for _, p := range r.Paths {
		if !strings.Contains(expandPlaces(p, c.options), "${") {
			paths = append(paths, p)
		}
	}
	r.Paths = paths
	return r
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
		c.policy.origins["env.allow"] = c.where(0)
	}
	for _, name := range f.Presets {
		c.policy.origins["presets"] = c.where(0)
		switch name {
		case presetReadOnly:
			c.policy.readOnly = true
		case presetWorkspace:
			c.policy.workspace = true
		default:
			c.fault("presets", name, "unknown preset %q: expected %s or %s", name, presetReadOnly, presetWorkspace)
		}
	}
	c.policy.env = append(c.policy.env, f.Env...)
	c.rules(f.Commands, c.command)
	c.rules(f.Paths, c.path)
	c.rules(f.Net, c.network)
}

// tighten adds a file that must not loosen.
func (c *compiler) tighten(f File) {
	c.file = f.Name
	c.ceilings(f)
	c.warnIf(len(f.Presets) > 0, "presets", 0)
	c.warnIf(len(f.Env) > 0, "env.allow", 0)
	c.warnIf(len(f.Disable) > 0, "builtin.disable", 0)
	c.rules(c.tightening(f.Commands), c.command)
	c.rules(c.tightening(f.Paths), c.path)
	c.rules(c.tightening(f.Net), c.network)
}

// defaultNames are the keys of the defaults in policy files.
var defaultNames = []string{
	"defaults.bash", "defaults.read", "defaults.write", "defaults.net", "defaults.unanalysable",
	"unknown_paths.read", "unknown_paths.write", "env.unknown",
}

// named returns the default with a name.
func (d *Defaults) named(name string) *Action {
	return map[string]*Action{
		"defaults.bash": &d.Bash, "defaults.read": &d.Read, "defaults.write": &d.Write, "defaults.net": &d.Net,
		"defaults.unanalysable": &d.Unanalysable, "unknown_paths.read": &d.UnknownRead,
		"unknown_paths.write": &d.UnknownWrite, "env.unknown": &d.UnknownEnv,
	}[name]
}

// ceilings makes no default more permissive than the file's own.
func (c *compiler) ceilings(f File) {
	p := c.policy
	p.headless = p.headless || f.Headless
	if f.AskTimeout > 0 && (p.timeout == 0 || f.AskTimeout < p.timeout) {
		p.timeout = f.AskTimeout
	}
	for _, name := range defaultNames {
		to, from := p.defaults.named(name), *f.Defaults.named(name)
		if from < *to {
			*to = from
			c.origin(f, name)
		}
		line, named := f.Lines[name]
		c.warnIf(named && from > *to, name+": "+from.String(), line)
	}
}

// origin records that a default comes from this file.
func (c *compiler) origin(f File, name string) {
	c.policy.origins[name] = c.where(f.Lines[name])
}

// tightening returns the rules that do not allow.
func (c *compiler) tightening(rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		c.warnIf(r.Action == Allow, "rule "+r.ID, r.Line)
		if r.Action != Allow {
			out = append(out, r)
		}
	}
	return out
}

// warnIf tells that something in a file has no effect.
func (c *compiler) warnIf(loosens bool, what string, line int) {
	if loosens {
		c.policy.warnings = append(c.policy.warnings, fmt.Sprintf("%s: %s has no effect: it is more permissive than the policy, which this file can only tighten", c.where(line), what))
	}
}

// AskTimeout returns how long a person has to answer a question; 0 means that
// the files leave it to the configuration.
func (p *Policy) AskTimeout() time.Duration { return p.timeout }

package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/shlex"
)

// The names of the presets.
const (
	presetReadOnly  = "shell-readonly"
	presetWorkspace = "shell-workspace"
)

// Policy is a compiled policy. It never changes and is safe for concurrent use.
type Policy struct {
	headless  bool
	defaults  Defaults
	file      string // of the defaults
	readOnly  bool   // presets
	workspace bool
	env       []string
	byName    map[string][]commandPattern // by the program's name
	anyName   []commandPattern            // of patterns that begin with a wildcard
	paths     []*rule
	net       []*rule
	warnings  []string
}

// rule is a compiled Rule.
type rule struct {
	Rule
	source string
	globs  []glob
	except []glob
	dirs   []glob
	not    []pattern // exceptions of a command rule
}

// commandPattern is one pattern of a command rule.
type commandPattern struct {
	pattern
	rule *rule
}

// Compile makes a policy of the built-in rules, the user's file and further
// files, which can only tighten: what loosens in them is left out and named in
// Warnings. The error joins every fault found, each with its file and line.
func Compile(o Options, user File, further ...File) (*Policy, error) {
	p := &Policy{
		headless: user.Headless, defaults: user.Defaults, file: user.Name,
		env: user.Env, byName: make(map[string][]commandPattern),
	}
	c := compiler{options: o, policy: p, fold: user.FoldCase}
	for _, f := range further {
		c.fold = c.fold || f.FoldCase
	}
	c.builtin(user.Disable)
	c.user(user)
	for _, f := range further {
		c.tighten(f)
	}
	return p, errors.Join(c.errs...)
}

// Warnings lists what Compile left out because it would have loosened.
func (p *Policy) Warnings() []string { return p.warnings }

// compiler collects the faults of the files it compiles.
type compiler struct {
	options Options
	policy  *Policy
	fold    bool
	file    string
	errs    []error
}

// builtin adds the built-in rules that are not switched off.
func (c *compiler) builtin(disabled []string) {
	off := make(map[string]bool)
	for _, id := range disabled {
		off[id] = true
	}
	commands, paths := builtinRules(c.options)
	for _, r := range commands {
		if !off[r.ID] {
			c.command(r)
		}
		delete(off, r.ID)
	}
	for _, r := range paths {
		if !off[r.ID] {
			c.path(c.known(r))
		}
		delete(off, r.ID)
	}
	for id := range off {
		c.fail(Rule{ID: "builtin.disable"}, fmt.Errorf("no built-in rule has the id %q", id))
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

// user adds the user's file.
func (c *compiler) user(f File) {
	c.file = f.Name
	if f.Defaults.Unanalysable == Allow {
		c.fail(Rule{ID: "defaults.unanalysable"}, errors.New("what cannot be analysed is never allowed: expected ask or deny"))
	}
	for _, name := range f.Presets {
		switch name {
		case presetReadOnly:
			c.policy.readOnly = true
		case presetWorkspace:
			c.policy.workspace = true
		default:
			c.fail(Rule{ID: "presets"}, fmt.Errorf("unknown preset %q: expected %s or %s", name, presetReadOnly, presetWorkspace))
		}
	}
	c.rules(f, f.Commands, c.command)
	c.rules(f, f.Paths, c.path)
	c.rules(f, f.Net, c.network)
}

// tighten adds a file that must not loosen.
func (c *compiler) tighten(f File) {
	c.file = f.Name
	p, d := c.policy, f.Defaults
	p.headless = p.headless || f.Headless
	for _, pair := range []struct{ to, from *Action }{
		{&p.defaults.Bash, &d.Bash},
		{&p.defaults.Read, &d.Read},
		{&p.defaults.Write, &d.Write},
		{&p.defaults.Net, &d.Net},
		{&p.defaults.Unanalysable, &d.Unanalysable},
		{&p.defaults.UnknownRead, &d.UnknownRead},
		{&p.defaults.UnknownWrite, &d.UnknownWrite},
		{&p.defaults.UnknownEnv, &d.UnknownEnv},
	} {
		*pair.to = min(*pair.to, *pair.from)
	}
	if len(f.Presets)+len(f.Env)+len(f.Disable) > 0 {
		c.warn(Rule{ID: "presets, env.allow and builtin.disable"})
	}
	c.rules(f, c.tightening(f.Commands), c.command)
	c.rules(f, c.tightening(f.Paths), c.path)
	c.rules(f, c.tightening(f.Net), c.network)
}

// tightening returns the rules that do not allow.
func (c *compiler) tightening(rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		if r.Action == Allow {
			c.warn(r)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (c *compiler) warn(r Rule) {
	c.policy.warnings = append(c.policy.warnings, fmt.Sprintf("%s: %s has no effect: this file can only tighten the policy", c.where(r), r.ID))
}

// rules adds the rules of one list, and checks their ids.
func (c *compiler) rules(f File, rules []Rule, add func(Rule)) {
	for _, r := range rules {
		switch {
		case r.ID == "":
			c.fail(r, errors.New("every rule needs an id"))
		case strings.HasPrefix(r.ID, "builtin:") || strings.HasPrefix(r.ID, "defaults."):
			c.fail(r, errors.New(`an id must not begin with "builtin:" or "defaults."`))
		}
		add(r)
	}
}

// where says where a rule stands.
func (c *compiler) where(r Rule) string {
	if c.file == "" {
		return "built-in"
	}
	if r.Line == 0 {
		return c.file
	}
	return fmt.Sprintf("%s:%d", c.file, r.Line)
}

func (c *compiler) fail(r Rule, err error) {
	c.errs = append(c.errs, fmt.Errorf("%s: rule %q: %w", c.where(r), r.ID, err))
}

// command adds a rule about commands.
func (c *compiler) command(r Rule) {
	out := &rule{Rule: r, source: c.where(r), dirs: c.globs(r, r.Dirs)}
	if len(r.Run) == 0 {
		c.fail(r, errors.New("run is empty: the rule can never match"))
	}
	for _, text := range r.Except {
		if p, ok := c.pattern(r, text); ok {
			out.not = append(out.not, p)
		}
	}
	for _, text := range r.Run {
		if p, ok := c.pattern(r, text); ok {
			c.index(commandPattern{p, c.anchored(out, p)})
		}
	}
	c.examples(out)
}

// anchored returns the rule for a pattern. A program named by a relative path is
// another one in every folder: a rule that allows it and names no folder means
// the one in the workspace.
func (c *compiler) anchored(r *rule, p pattern) *rule {
	program := p.tokens[0][0]
	if r.Action != Allow || len(r.dirs) > 0 || !strings.Contains(program, "/") || strings.HasPrefix(program, "/") {
		return r
	}
	local := *r
	local.dirs = c.globs(r.Rule, []string{"${workspace}"})
	return &local
}

// pattern compiles one command pattern.
func (c *compiler) pattern(r Rule, text string) (pattern, bool) {
	p, err := compilePattern(text)
	if err != nil {
		c.fail(r, err)
	}
	return p, err == nil
}

// index files a pattern under the names of its program.
func (c *compiler) index(cp commandPattern) {
	for _, name := range cp.tokens[0] {
		if strings.Contains(name, "*") {
			c.policy.anyName = append(c.policy.anyName, cp)
			continue
		}
		name = baseName(name)
		c.policy.byName[name] = append(c.policy.byName[name], cp)
	}
}

// examples checks a command rule against its own examples.
func (c *compiler) examples(r *rule) {
	check := func(text string, want bool) {
		words, err := shlex.Split(text)
		if err != nil || shellSyntax(text) != "" {
			c.fail(r.Rule, fmt.Errorf("example %q is not one plain command", text))
			return
		}
		argv := make([]Word, len(words))
		for i, w := range words {
			argv[i].Text = w
		}
		if c.policy.matches(r, Effect{Kind: Exec, Argv: argv}) != want {
			c.fail(r.Rule, fmt.Errorf("example %q: the rule should%s match it", text, map[bool]string{false: " not"}[want]))
		}
	}
	for _, text := range r.Match {
		check(text, true)
	}
	for _, text := range r.NotMatch {
		check(text, false)
	}
}

// path adds a rule about paths.
func (c *compiler) path(r Rule) {
	if r.ID == "builtin:toold" && len(r.Paths) == 0 {
		return
	}
	if len(r.Paths) == 0 {
		c.fail(r, errors.New("match is empty: the rule can never match"))
	}
	for _, op := range r.Ops {
		if op != Read && op != Write {
			c.fail(r, fmt.Errorf("unknown operation %q: expected read or write", op))
		}
	}
	c.policy.paths = append(c.policy.paths, &rule{
		Rule: r, source: c.where(r), globs: c.globs(r, r.Paths), except: c.globs(r, r.Except),
	})
}

// globs compiles path patterns.
func (c *compiler) globs(r Rule, patterns []string) []glob {
	var out []glob
	for _, text := range patterns {
		choices, err := expandBraces(text)
		if err != nil {
			c.fail(r, fmt.Errorf("path pattern %q: %v", text, err))
			continue
		}
		for _, choice := range choices {
			g, err := compileGlob(choice, c.options, c.fold)
			if err != nil {
				c.fail(r, err)
				continue
			}
			out = append(out, g)
		}
	}
	return out
}

// network adds a rule about hosts.
func (c *compiler) network(r Rule) {
	if len(r.Hosts) == 0 {
		c.fail(r, errors.New("hosts is empty: the rule can never match"))
	}
	for i, h := range r.Hosts {
		if h == "" || strings.Contains(strings.TrimPrefix(h, "*."), "*") || strings.ContainsAny(h, "/ \x00") {
			c.fail(r, fmt.Errorf(`host %q: expected a name, an address, or "*." and a name`, h))
		}
		r.Hosts[i] = strings.ToLower(h)
	}
	c.policy.net = append(c.policy.net, &rule{Rule: r, source: c.where(r)})
}

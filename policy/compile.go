package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/shlex"

	"github.com/toold/toold/shell/programs"
)

// Policy is a compiled policy. It is immutable and safe for concurrent use.
type Policy struct {
	options Options
	title   string
	files   []File // the user's, the administrator's if any, further ones
	further []File // as passed to Compile

	headless    bool
	confinement Confinement // see Policy.Within
	defaults    Defaults
	origins     map[string]string // position of each default by name
	readOnly    bool              // the preset is set
	workspace   bool
	sets        []*ruleSet      // of the files, then of the files for the client
	ids         map[string]bool // of all rules
	guests      []guest
	root        *Policy       // see Root
	timeout     time.Duration // how long approvals may take; 0: as configured
	conditional bool          // some rule sets Always or Profile
	// Allow rules, and exceptions of other rules, fold case only if a file that may allow says so.
	foldAllowing, foldBlocking bool

	warnings []string
}

type rule struct {
	Rule
	file   string // "": built-in rule
	source string
	// tightens marks rules of a file that can only tighten. Such an ask rule does not weaken a denial.
	tightens bool
	globs    []glob
	except   []glob
	dirs     []glob
	not      []pattern // exceptions of a command rule
	required []requirement
}

type commandPattern struct {
	pattern
	rule *rule
}

type compiler struct {
	policy   *Policy
	set      *ruleSet
	file     string // file being compiled; "": built-in rules
	tightens bool
	errs     []error
	ids      []string // of built-in rules
}

func (c *compiler) rules(rules []Rule, add func(Rule)) {
	for _, r := range rules {
		loosens := c.tightens && r.Action == Allow
		c.warnIf(loosens, "rule "+r.ID, r.Line)
		switch {
		case loosens:
			continue
		case r.ID == "":
			c.fail(r, "", "every rule needs an id")
		case strings.HasPrefix(r.ID, "builtin:") || strings.HasPrefix(r.ID, "defaults."):
			c.fail(r, r.ID, `an id must not begin with "builtin:" or "defaults."`)
		}
		c.policy.ids[r.ID] = true
		c.conditions(r)
		add(r)
	}
}

func (c *compiler) conditions(r Rule) {
	if r.Always && r.Action != Ask {
		c.fail(r, "", "always: true has a meaning only where decision is ask")
	}
	if len(r.PermitFlags)+len(r.ForbidFlags)+len(r.RequireFlags) > 0 && r.Action != Allow {
		c.fail(r, "", "permit_flags, forbid_flags and require_flags have a meaning only where decision is allow")
	}
	switch {
	case r.Profile == "":
	case r.Action == Deny:
		c.fail(r, r.Profile, "sandbox has no meaning where decision is deny: nothing runs")
	case r.Profile != profileReadOnly && r.Profile != profileWorkspace:
		c.fail(r, r.Profile, "unknown sandbox %q: expected %s or %s; a rule can only tighten", r.Profile, profileReadOnly, profileWorkspace)
	}
	c.policy.conditional = c.policy.conditional || r.Always || r.Profile != ""
}

func where(file string, line int) string {
	if file == "" {
		return "built-in"
	}
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// Fault is an error in a policy file.
type Fault struct {
	File    string // "": built-in rules
	Line    int    // line of the rule; 0: unknown
	Rule    string // its id; "": not in a rule
	Key     string // key outside of rules, such as "presets"
	Value   string // the wrong text; may be ""
	Problem string // what is wrong and what was expected
}

func (f *Fault) Error() string {
	subject := f.Key
	if f.Rule != "" {
		subject = fmt.Sprintf("rule %q", f.Rule)
	}
	return fmt.Sprintf("%s: %s: %s", where(f.File, f.Line), subject, f.Problem)
}

func (c *compiler) fail(r Rule, value, format string, args ...any) {
	c.errs = append(c.errs, &Fault{File: c.file, Line: r.Line, Rule: r.ID, Value: value, Problem: fmt.Sprintf(format, args...)})
}

func (c *compiler) fault(key, value, format string, args ...any) {
	c.errs = append(c.errs, &Fault{File: c.file, Key: key, Value: value, Problem: fmt.Sprintf(format, args...)})
}

func (c *compiler) compiled(r Rule) *rule {
	return &rule{Rule: r, file: c.file, source: where(c.file, r.Line), tightens: c.tightens}
}

func (c *compiler) command(r Rule) {
	out := c.compiled(r)
	out.dirs = c.globs(r, r.Dirs, c.folds(r.Action == Allow))
	if len(r.Run)+len(r.Classes) == 0 {
		c.fail(r, "", "run is empty: the rule can never match")
	}
	c.classes(out)
	out.required = c.required(r)
	for _, text := range r.Except {
		if p, ok := c.pattern(r, text); ok {
			out.not = append(out.not, p)
		}
	}
	var own []commandPattern
	for _, text := range r.Run {
		if p, ok := c.pattern(r, text); ok {
			own = append(own, commandPattern{p, out})
			c.set.command(&commandPattern{p, c.anchored(out, p)})
		}
	}
	if len(own) == len(r.Run) {
		c.examples(out, own)
	}
}

func (c *compiler) classes(r *rule) {
	if len(r.Classes) == 0 {
		return
	}
	if r.Action == Allow {
		c.fail(r.Rule, "", "class has a meaning only where decision is ask or deny: name the commands that are allowed")
	}
	for _, name := range r.Classes {
		if name != classDestructive && name != classOutgoing {
			c.fail(r.Rule, name, "unknown class %q: expected %s or %s", name, classDestructive, classOutgoing)
		}
	}
	c.set.classes = append(c.set.classes, r)
}

// anchored restricts an allow rule with a relative program to the workspace: elsewhere the path is another program.
func (c *compiler) anchored(r *rule, p pattern) *rule {
	program := p.tokens[0][0]
	if relative := strings.Index(program, "/") > 0; r.Action != Allow || len(r.dirs) > 0 || !relative {
		return r
	}
	local := *r
	local.dirs = c.globs(r.Rule, []string{"${workspace}"}, c.policy.foldAllowing)
	return &local
}

func (c *compiler) pattern(r Rule, text string) (pattern, bool) {
	p, err := compilePattern(text)
	if err != nil {
		c.fail(r, text, "%v", err)
	}
	return p, err == nil
}

func (c *compiler) examples(r *rule, patterns []commandPattern) {
	check := func(text string, want bool) {
		words, err := shlex.Split(text)
		if err != nil || shellSyntax(text) != "" {
			c.fail(r.Rule, text, "example %q is not one plain command", text)
			return
		}
		argv := programs.Words(words)
		command := programs.Spell(argv)
		matches := slices.ContainsFunc(patterns, func(cp commandPattern) bool {
			return cp.allows(Effect{Kind: Exec, Argv: argv}) || cp.blocks(&command, argv, nil)
		})
		if matches != want {
			c.fail(r.Rule, text, "example %q: the rule should%s match it", text, map[bool]string{false: " not"}[want])
		}
	}
	for _, text := range r.Match {
		check(text, true)
	}
	for _, text := range r.NotMatch {
		check(text, false)
	}
}

func (c *compiler) path(r Rule) {
	if len(r.Paths) == 0 {
		c.fail(r, "", "match is empty: the rule can never match")
	}
	for _, op := range r.Ops {
		if op != Read && op != Write {
			c.fail(r, "", "unknown operation %q: expected read or write", op)
		}
	}
	out, list := c.compiled(r), &c.set.blocks
	if r.Action == Allow {
		list = &c.set.allows
	}
	list.fold = c.folds(r.Action == Allow)
	out.globs, out.except = c.globs(r, r.Paths, list.fold), c.exceptions(r)
	list.add(out)
}

// exceptions compiles exceptions. They fold case as the opposite kind of rule does, and also apply to paths as
// written, because rules match both forms of a path.
func (c *compiler) exceptions(r Rule) []glob {
	fold := c.folds(r.Action != Allow)
	written := compiler{policy: &Policy{options: c.policy.options}}
	written.policy.options.Resolve = nil
	return append(c.globs(r, r.Except, fold), written.globs(r, r.Except, fold)...)
}

func (c *compiler) folds(allowing bool) bool {
	if allowing {
		return c.policy.foldAllowing
	}
	return c.policy.foldBlocking
}

func (c *compiler) globs(r Rule, patterns []string, fold bool) []glob {
	var out []glob
	for _, text := range patterns {
		choices, err := ExpandBraces(text)
		if err != nil {
			c.fail(r, text, "path pattern %q: %v", text, err)
			continue
		}
		for _, choice := range choices {
			g, err := compileGlob(choice, c.policy.options, fold)
			if err != nil {
				c.fail(r, text, "%v", err)
				continue
			}
			out = append(out, g)
		}
	}
	return out
}

func (c *compiler) network(r Rule) {
	if len(r.Hosts) == 0 {
		c.fail(r, "", "hosts is empty: the rule can never match")
	}
	r.Hosts, r.Except = c.hosts(r, r.Hosts), c.hosts(r, r.Except)
	c.set.network(c.compiled(r))
}

func (c *compiler) hosts(r Rule, names []string) []string {
	out := make([]string, len(names))
	for i, h := range names {
		name, below := strings.CutPrefix(h, "*.")
		if out[i] = programs.CleanHost(name); out[i] == "" {
			c.fail(r, h, `host %q: expected an address, a name in ASCII (xn--…), or "*." and a name; ports and schemes have keys of their own`, h)
		} else if below {
			out[i] = "*." + out[i]
		}
	}
	return out
}

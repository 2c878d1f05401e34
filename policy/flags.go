package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

func (cp *commandPattern) allows(e Effect) bool {
	lacking, ok := cp.covers(e)
	return ok && len(lacking) == 0
}

// covers reports whether the rule covers the command except for lacking: unsafe flags that permit_flags must name.
func (cp *commandPattern) covers(e Effect) (lacking []Word, ok bool) {
	r := cp.rule
	if r.Action != Allow || !r.isIn(e) {
		return nil, false
	}
	free, ok := cp.matchesAllow(e.Argv)
	if !ok && len(r.required) == 0 {
		return nil, false
	}
	c := programs.Parse(e.Argv)
	if slices.ContainsFunc(r.not, func(not pattern) bool { return not.means(&c, e.Argv) }) {
		return nil, false
	}
	if len(r.required) > 0 {
		if free, ok = cp.beside(&c, e.Argv); !ok {
			return nil, false
		}
	}
	unknown := len(free) > 0 && c.Opaque != ""
	if unknown || otherValue(&c, free) || r.forbids(&c, e.Argv[0]) {
		return nil, false
	}
	return r.lacking(&c, e.Argv, free), true
}

// lacking returns the unsafe words among the free ones that permit_flags does not name.
func (r *rule) lacking(c *programs.Command, argv []Word, free []int) (list []Word) {
	for _, at := range c.Unsafe {
		if w := argv[at]; slices.Contains(free, at) && (w.Dynamic || !r.permits(c, w.Text)) {
			list = append(list, w)
		}
	}
	return list
}

// otherValue reports whether a wildcard matches a flag of the pattern again, with another value.
func otherValue(c *programs.Command, free []int) bool {
	for _, named := range c.Flags {
		other := func(f programs.Flag) bool {
			return named.MayBe(f) && slices.Contains(free, f.At) && f.Value != named.Value
		}
		if named.HasValue && !slices.Contains(free, named.At) && slices.ContainsFunc(c.Flags, other) {
			return true
		}
	}
	return false
}

// forbids reports whether the command has a flag of forbid_flags, in any spelling.
func (r *rule) forbids(c *programs.Command, program Word) bool {
	for _, text := range r.ForbidFlags {
		forbidden := programs.Parse([]Word{program, {Text: text}})
		if len(forbidden.Flags) == 0 || strings.Contains(text, "*") {
			forbidden.Flags = []programs.Flag{{Name: text}}
		}
		if slices.ContainsFunc(forbidden.Flags, func(f programs.Flag) bool { return hasFlag(c, f) }) {
			return true
		}
	}
	return false
}

func (r *rule) permits(c *programs.Command, word string) bool {
	if matchesAny(r.PermitFlags, word) {
		return true
	}
	short, ok := strings.CutPrefix(word, "--")
	return ok && c.OneDash && matchesAny(r.PermitFlags, "-"+short)
}

// nearest returns the rule that would allow a command without the fewest flags, and these flags. best may be nil.
func (p *Policy) nearest(e Effect) (best *rule, flags []Word) {
	if size(e.Argv) > maxTried {
		return nil, nil
	}
	for _, cp := range p.allowing(e) {
		lacking, ok := cp.covers(e)
		fewer := best == nil || len(lacking) < len(flags)
		if ok && fewer && len(lacking) > 0 {
			best, flags = cp.rule, lacking
		}
	}
	return best, flags
}

const maxFlags = 4

// butFor names the rule that would allow an effect without its flags, and those flags; "" if there is none.
func (p *Policy) butFor(e Effect) string {
	r, flags := p.nearest(e)
	if r == nil {
		return ""
	}
	var names []string
	for _, w := range flags[:min(len(flags), maxFlags)] {
		if w.Dynamic {
			w.Text += "…"
		}
		names = append(names, shorten(w.Text))
	}
	if len(flags) > maxFlags {
		names = append(names, "others")
	}
	return fmt.Sprintf(": rule %q would, but for %s, which its permit_flags do not name", r.ID, strings.Join(names, " and "))
}

// requirement is a flag that must have this value, in any spelling of the flag.
type requirement struct{ name, value string }

func (c *compiler) required(r Rule) (list []requirement) {
	for _, text := range r.RequireFlags {
		name, value, _ := strings.Cut(strings.Replace(strings.TrimSpace(text), "=", " ", 1), " ")
		value = strings.TrimSpace(value)
		isFlag := len(name) > 1 && name[0] == '-' && !strings.ContainsAny(name, "*{}")
		if !isFlag || strings.ContainsAny(value, " {}'\"") {
			c.fail(r, text, "require_flags: %q is no flag with its value: write one such as %q, with * in the value alone", text, "-n dev")
			continue
		}
		list = append(list, requirement{name, value})
	}
	return list
}

// without returns argv without the required flags, and the original index of each word. ok is false if a flag is
// missing, has another value, or is ambiguous.
func (r *rule) without(c *programs.Command, argv []Word) (left []Word, at []int, ok bool) {
	gone := make(map[int]bool)
	for _, need := range r.required {
		found := false
		for _, f := range c.Flags {
			if !(programs.Flag{Name: need.name}).MayBe(f) {
				continue
			}
			words := f.Words(argv)
			known := words > 0 && !f.Value.Dynamic && f.HasValue == (need.value != "")
			if !known || !programs.Matches(need.value, f.Value.Text) {
				return nil, nil, false
			}
			for i := range words {
				gone[f.At+i] = true
			}
			found = true
		}
		if !found {
			return nil, nil, false
		}
	}
	for i, w := range argv {
		if !gone[i] {
			left, at = append(left, w), append(at, i)
		}
	}
	return left, at, true
}

// beside is matchesAllow for a rule with required flags.
func (cp *commandPattern) beside(c *programs.Command, argv []Word) (free []int, ok bool) {
	if c.Opaque != "" || c.Or != nil {
		return nil, false
	}
	left, at, ok := cp.rule.without(c, argv)
	if !ok {
		return nil, false
	}
	if free, ok = cp.matchesAllow(left); !ok {
		return nil, false
	}
	for i, word := range free {
		free[i] = at[word]
	}
	return free, true
}

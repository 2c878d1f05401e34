package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// allows reports whether an allowing rule covers the command with all its flags.
func (cp *commandPattern) allows(e Effect) bool {
	lacking, ok := cp.covers(e)
	return ok && len(lacking) == 0
}

// covers reports whether an allowing rule covers the command but for some unsafe
// flags, which its permit_flags would have to name.
func (cp *commandPattern) covers(e Effect) (lacking []Word, ok bool) {
	r := cp.rule
	if r.Action != Allow || !r.isIn(e) {
		return nil, false
	}
	free, ok := cp.strict(e.Argv)
	if !ok && len(r.required) == 0 {
		return nil, false
	}
	for _, not := range r.not {
		if not.loose(e.Argv) {
			return nil, false
		}
	}
	c := programs.Parse(e.Argv)
	if len(r.required) > 0 {
		if free, ok = cp.beside(&c, e.Argv); !ok {
			return nil, false
		}
	}
	if len(free) > 0 && c.Opaque != "" || otherValue(&c, free) || r.forbids(&c, e.Argv[0]) {
		return nil, false
	}
	for _, f := range c.Unsafe {
		if w := e.Argv[f.At]; slices.Contains(free, f.At) && (w.Dynamic || !r.permits(&c, w.Text)) {
			lacking = append(lacking, w)
		}
	}
	return lacking, true
}

// otherValue reports whether a flag that the pattern names with its value is there
// once more, where a wildcard is, with another one.
func otherValue(c *programs.Command, free []int) bool {
	for _, named := range c.Flags {
		if !named.HasValue || slices.Contains(free, named.At) {
			continue
		}
		for _, f := range c.Flags {
			if f.MayBe(named) && slices.Contains(free, f.At) && f.Value != named.Value {
				return true
			}
		}
	}
	return false
}

// forbids reports whether the command has a flag that the rule does not cover, in
// any of its spellings.
func (r *rule) forbids(c *programs.Command, program Word) bool {
	for _, text := range r.ForbidFlags {
		forbidden := programs.Parse([]Word{program, {Text: text}})
		if len(forbidden.Flags) == 0 || strings.Contains(text, "*") {
			forbidden.Flags = []programs.Flag{{Name: text}}
		}
		for _, f := range forbidden.Flags {
			if hasFlag(c, f) {
				return true
			}
		}
	}
	return false
}

// permits reports whether the rule wants to cover an unsafe flag.
func (r *rule) permits(c *programs.Command, word string) bool {
	if matchesAny(r.PermitFlags, word) {
		return true
	}
	short, ok := strings.CutPrefix(word, "--")
	return ok && c.OneDash && matchesAny(r.PermitFlags, "-"+short)
}

// nearest returns the rule that allows a command but for the fewest of its flags,
// and these; nil where there is none.
func (p *Policy) nearest(e Effect) (best *rule, flags []Word) {
	if e.Kind != Exec || len(e.Argv) == 0 || e.Argv[0].Dynamic || size(e.Argv) > maxTried {
		return nil, nil
	}
	for list := range p.named(baseName(e.Argv[0].Text)) {
		for _, i := range list.allowing(e.Argv) {
			cp := list.list[i]
			lacking, ok := cp.covers(e)
			if ok && len(lacking) > 0 && (best == nil || len(lacking) < len(flags)) {
				best, flags = cp.rule, lacking
			}
		}
	}
	return best, flags
}

// maxFlags bounds the flags that a reason names.
const maxFlags = 4

// butFor names the rule that allows a command but for some of its flags, for people.
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

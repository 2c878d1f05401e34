package policy

import (
	"strings"

	"github.com/toold/toold/shell/programs"
)

// requirement is a flag that a command must have for an allowing rule to cover it, in any
// spelling and place, with this value and no other.
type requirement struct{ name, value string }

// required reads the flags that a rule requires: "-n dev", "--namespace=dev" or "--dry-run".
func (c *compiler) required(r Rule) (list []requirement) {
	for _, text := range r.RequireFlags {
		name, value, _ := strings.Cut(strings.Replace(strings.TrimSpace(text), "=", " ", 1), " ")
		value = strings.TrimSpace(value)
		if len(name) < 2 || name[0] != '-' || strings.ContainsAny(name, "*{}") || strings.ContainsAny(value, " {}'\"") {
			c.fail(r, text, "require_flags: %q is no flag with its value: write one such as %q, with * in the value alone", text, "-n dev")
			continue
		}
		list = append(list, requirement{name, value})
	}
	return list
}

// without takes the flags that a rule requires out of a command, so that its patterns need
// not name the places where these stand. at is where each word that is left was. ok is false
// when one is missing, has another value, or cannot be told from the words around it.
func (r *rule) without(c *programs.Command, argv []Word) (left []Word, at []int, ok bool) {
	gone := make(map[int]bool)
	for _, need := range r.required {
		found := false
		for _, f := range c.Flags {
			if !(programs.Flag{Name: need.name}).MayBe(f) {
				continue
			}
			words := f.Words(argv)
			if words == 0 || f.HasValue != (need.value != "") || f.Value.Dynamic || !programs.Matches(need.value, f.Value.Text) {
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

// beside reports whether the pattern of an allowing rule matches the command, beside the
// flags that the rule requires. free lists the words that only a wildcard matched.
func (cp *commandPattern) beside(c *programs.Command, argv []Word) (free []int, ok bool) {
	if c.Opaque != "" || c.Or != nil {
		return nil, false
	}
	left, at, ok := cp.rule.without(c, argv)
	if !ok {
		return nil, false
	}
	if free, ok = cp.strict(left); !ok {
		return nil, false
	}
	for i, word := range free {
		free[i] = at[word]
	}
	return free, true
}

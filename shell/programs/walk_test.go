package programs

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEverySpecificationHasAnExample(t *testing.T) {
	t.Parallel()
	for name, s := range library() {
		if s.as == nil && !exemplified(s) {
			t.Errorf("%s has no example", name)
		}
	}
}

func exemplified(s *spec) bool {
	return len(s.examples) > 0 || slices.ContainsFunc(slices.Collect(maps.Values(s.subs)), exemplified)
}

// TestUnknownWordsAreNoStructure puts, at each flag of each specification, a word that
// may become several, and one that is known only at run time. What is covered all the
// same must not depend on it: no flag of the program does more than read, and that it
// may read anything is said.
func TestUnknownWordsAreNoStructure(t *testing.T) {
	t.Parallel()
	for name, s := range library() {
		if s.as == nil {
			walk(t, s, []string{name})
		}
	}
}

func walk(t *testing.T, s *spec, path []string) {
	for _, flag := range slices.Sorted(maps.Keys(s.flags)) {
		if flag == "--" {
			continue // operands follow
		}
		for _, unknown := range []Word{{Dynamic: true, Many: true}, {Text: "x", Dynamic: true, Many: true}, {Dynamic: true}} {
			argv := prepend(path, []Word{{Text: flag}, unknown})
			check(t, s, argv, unknown, flag)
			if strings.HasPrefix(flag, "--") && s.flags[flag].values != "" {
				check(t, s, prepend(path, []Word{{Text: flag + "=" + unknown.Text, Dynamic: true, Many: unknown.Many}}), unknown, flag)
			}
		}
	}
	for word, sub := range s.subs {
		walk(t, sub, append(slices.Clip(path), word))
	}
}

func check(t *testing.T, s *spec, argv []Word, unknown Word, name string) {
	c := Parse(argv)
	if c.Covers == CoversNone || c.Opaque != "" {
		return
	}
	one := !unknown.Many && s.flags[name] != nil && strings.HasPrefix(s.flags[name].values, ":")
	if one {
		return // the value of the flag, whatever it is
	}
	reads := slices.ContainsFunc(c.Operands, func(o Operand) bool { return o.Word.Dynamic })
	harmless := slices.ContainsFunc(s.forms, func(f *form) bool { return f.anyFlags })
	only := harmless && !slices.ContainsFunc(s.forms, func(f *form) bool { return f.level == CoversWrite })
	words := only && !slices.ContainsFunc(s.forms, func(f *form) bool { return slices.ContainsFunc(f.roles, isFile) })
	if !only || !reads && !words {
		t.Errorf("%s is covered", plain(argv...))
	}
}

func isFile(role string) bool { return !strings.HasPrefix(role, "word") }

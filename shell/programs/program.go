package programs

import (
	"slices"
	"sync"

	"github.com/toold/toold/internal/spell"
)

// Program is what is known of a program independently of its arguments.
type Program struct {
	name string
	spec *spec // or nil
}

// Find finds a program by its name, in any directory.
func Find(name string) Program {
	s, _ := find([]Word{{Text: name}})
	return Program{name, s}
}

// Name returns the name under which rules for the program are indexed.
func (p Program) Name() string {
	if p.spec != nil {
		return p.spec.name
	}
	return baseName(p.name)
}

// Is reports whether is holds for a name under which rules for its commands are indexed: yarn publish is one of npm.
func (p Program) Is(is func(name string) bool) bool {
	if p.spec == nil {
		return is(p.Name())
	}
	for _, sub := range p.spec.subs {
		if sub.as != nil && is(sub.as[0]) {
			return true
		}
	}
	return is(p.Name())
}

// Classed reports whether some command of the program may lose work or send data off this machine.
func (p Program) Classed() bool { return p.spec != nil && p.spec.classed }

// KnowsFlags reports whether the flags of the program are known.
func (p Program) KnowsFlags() bool {
	return p.spec != nil && (len(p.spec.flags) > 0 || p.spec.has("go"))
}

// Judged reports whether the program's unsafe flags are known.
func (p Program) Judged() bool {
	s := p.spec
	return s != nil && (len(s.unsafe)+len(s.forms)+len(s.as) > 0 || s.special != "")
}

// RunsAnything reports whether the program runs its arguments, or has effects that no rule can express.
func (p Program) RunsAnything() bool {
	if p.spec == nil {
		return false
	}
	runs := slices.ContainsFunc([]string{"far", "runs", "code", "stdin"}, p.spec.has)
	return runs || p.spec.inline != ""
}

var known = sync.OnceValue(func() (names []string) {
	for name := range library() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
})

// Near returns a well-known program whose name is one typo away from this unknown one, or "".
func (p Program) Near() string {
	if p.spec != nil {
		return ""
	}
	for _, other := range known() {
		if swapped(p.name, other) || min(len(p.name), len(other)) > 3 && spell.Distance(p.name, other) == 1 {
			return other
		}
	}
	return ""
}

func swapped(a, b string) bool {
	for i := range max(len(a)-1, 0) {
		if len(a) == len(b) && a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

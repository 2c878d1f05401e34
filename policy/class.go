package policy

import (
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// The classes of commands of which a rule may be, as their specifications say.
const (
	classDestructive = "destructive" // loses work that cannot be had again
	classOutgoing    = "outgoing"    // sends something off this machine
)

// classed reports the asking and denying rules about the classes of a command.
func (s *search) classed(e Effect) {
	var of classes
	for _, set := range s.policy.sets {
		for _, r := range set.classes {
			if s.noted[r] || !r.mayBeIn(e.Dirs) {
				continue
			}
			if of == nil {
				of = classesOf(e)
			}
			if of.why(r) != "" && !excepted(r, e.Argv) {
				s.note(r, r.Action, e.Argv)
			}
		}
	}
}

// inner reports the rules about the classes of a command that may run in another one.
func (s *search) inner(argv []Word) {
	if s.classes {
		s.left -= 4 * len(argv)
		s.classed(Effect{Argv: argv, Kept: movesElsewhere(argv)})
	}
}

// movesElsewhere reports whether a command moves files, and names no directory for
// temporary files.
func movesElsewhere(argv []Word) bool {
	return programs.Parse(argv).Moves && !slices.ContainsFunc(argv, func(w Word) bool { return strings.Contains(w.Text, "/tmp") })
}

// excepted reports whether a rule's exceptions name a command.
func excepted(r *rule, argv []Word) bool {
	return slices.ContainsFunc(r.not, func(not pattern) bool {
		_, ok := not.strict(argv)
		return ok
	})
}

// classes are those of one command, with what it does that makes it one of each.
type classes map[string]string

// why says what the command does that makes the rule match it; "" when that does not.
func (c classes) why(r *rule) string {
	for _, name := range r.Classes {
		if c[name] != "" {
			return c[name]
		}
	}
	return ""
}

// classesOf returns the classes of a command, without what those lose that it starts. A
// word of which nothing is known is taken for an operand: that it could be a flag makes no
// class. What may be any number of words is two.
func classesOf(e Effect) classes {
	argv := make([]Word, 0, len(e.Argv))
	for i, w := range e.Argv {
		if i > 0 && w.Dynamic && w.Text == "" {
			w.Text, w.Dynamic = "…", false
		}
		if w.Many {
			w.Many = false
			argv = append(argv, w)
			w = Word{Text: "…"}
		}
		argv = append(argv, w)
	}
	of := make(classes)
	if e.Absent { // it does nothing
		return of
	}
	c := programs.Parse(argv)
	if c.Loses != "" && !e.Kept {
		of[classDestructive] = "it " + c.Loses
	}
	if c.Leaves {
		of[classOutgoing] = "it sends something off this machine"
	}
	return of
}

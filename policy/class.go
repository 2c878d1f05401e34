package policy

import "github.com/toold/toold/shell/programs"

// The classes of commands of which a rule may be, as their specifications say.
const (
	classDestructive = "destructive" // loses work that cannot be had again
	classOutgoing    = "outgoing"    // sends something off this machine
)

// classed reports the asking and denying rules about the classes of a command.
func (p *Policy) classed(e Effect, consider func(*rule, Action, []Word)) {
	var c classes
	for _, s := range p.sets {
		for _, r := range s.classes {
			if !r.mayBeIn(e.Dirs) {
				continue
			}
			if c.of == nil {
				c = classesOf(e)
			}
			if c.has(r) && !excepted(r, e.Argv) {
				consider(r, r.Action, e.Argv)
			}
		}
	}
}

func excepted(r *rule, argv []Word) bool {
	for _, not := range r.not {
		if _, ok := not.strict(argv); ok {
			return true
		}
	}
	return false
}

// classes are those of one command, with what there is to say of each.
type classes struct{ of map[string]string }

// has reports whether the command is of a class that the rule names.
func (c classes) has(r *rule) bool {
	for _, name := range r.Classes {
		if _, ok := c.of[name]; ok {
			return true
		}
	}
	return false
}

// why says what the command does that makes the rule match it.
func (c classes) why(r *rule) string {
	for _, name := range r.Classes {
		if text := c.of[name]; text != "" {
			return text
		}
	}
	return ""
}

// classesOf returns the classes of a command. What another command does that it starts is
// an effect of its own. A word of which nothing is known is taken for an operand: that it
// could be a flag makes no class. What may be any number of words is two.
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
	c := specified(argv)
	own := c.Loses
	for _, run := range c.Runs {
		if len(run.Argv) > 0 && programs.Parse(run.Argv).Loses == own {
			own = ""
		}
	}
	of := make(map[string]string)
	if e.Absent { // it does nothing
		return classes{of}
	}
	if own != "" && !e.Kept {
		of[classDestructive] = "it " + own
	}
	if c.Leaves {
		of[classOutgoing] = "it sends something off this machine"
	}
	return classes{of}
}

// specified reads a command by the specification of its program.
func specified(argv []Word) programs.Command { return programs.Parse(argv) }

package programs

import (
	"slices"
	"strings"
)

// runs says what a command starts. own are the program's words, started those of the
// command that comes after them.
func (g *getopt) runs(own, started []Word) {
	s, c := g.spec, g.c
	root := s.root()
	if n := len(c.Flags); n > 0 && s.has("module") && c.Flags[n-1].Name == "-m" && c.Flags[n-1].HasValue {
		started = append([]Word{c.Flags[n-1].Value}, started...)
	}
	for i := range own {
		if s.has("variables") && !own[i].flagLike() && strings.Contains(own[i].Text, "=") {
			c.Operands = append(c.Operands, Operand{Word: own[i], Role: "variable"})
		}
	}
	for _, f := range c.Flags {
		if f.spec != nil && strings.HasPrefix(f.spec.values, ";") {
			c.Runs = append(c.Runs, Run{Script: f.Value, Language: "sh"})
		}
	}
	switch {
	case s.has("shell"):
		g.shell(started)
		return
	case s.has("xargs") && len(started) == 0:
		started = []Word{{Text: "echo"}}
	case len(started) == 0:
		return
	}
	if s.has("packages") || s.has("package") {
		started = unversioned(started)
	}
	if s.has("again") {
		started = prepend([]string{root.name}, started)
	}
	run := Run{Argv: started, Dir: c.directory(), Adds: s.has("xargs")}
	if s.has("elsewhere") {
		run.Dir = Word{Dynamic: true}
	}
	if run.Adds {
		run.Replaces = c.value("-I").Text
	}
	if first := started[0]; first.Dynamic {
		g.opaque("the program that " + root.name + " starts is known only when it runs")
	}
	c.Runs = append(c.Runs, run)
}

// directory is where a flag says that the command runs.
func (c *Command) directory() Word { return c.value("--chdir") }

// value returns the value of a flag.
func (c *Command) value(name string) Word {
	for _, f := range c.Flags {
		if f.Name == name {
			return f.Value
		}
	}
	return Word{}
}

// hasFlag reports whether the command has a flag.
func (c *Command) hasFlag(name string) bool {
	return slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Name == name })
}

// shell says what a shell runs: a text after -c, or a file, or its input.
func (g *getopt) shell(started []Word) {
	if len(started) == 0 {
		return
	}
	if g.c.hasFlag("-c") {
		g.c.Runs = append(g.c.Runs, Run{Script: started[0], Language: g.spec.name, Argv: started[1:]})
	}
}

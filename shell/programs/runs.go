package programs

import (
	"cmp"
	"slices"
	"strings"
)

// runs records what a command starts with the words that follow its own.
func (g *getopt) runs(own, started []Word) {
	s, c := g.spec, &g.c
	if s.has("module") {
		started = c.withModule(started)
	}
	started, given := c.afterFlag(s, started)
	c.Operands = append(c.Operands, s.variables(own)...)
	for _, f := range c.Flags {
		if f.spec != nil && strings.HasPrefix(f.spec.values, ";") {
			c.Runs = append(c.Runs, Run{Script: f.Value, Language: "text"})
		}
	}
	c.Through = s.has("through")
	run := Run{At: len(g.argv) - len(started), Dir: c.directory(), Adds: s.has("xargs"), Elsewhere: s.has("elsewhere")}
	switch {
	case s.has("shell"):
		g.shell(started)
		return
	case s.has("xargs") && len(started) == 0:
		started, run.At = []Word{{Text: "echo"}}, 0
	case len(started) == 0:
		return
	}
	if s.has("packages") || s.has("package") {
		started = Unversioned(started)
	}
	if s.has("again") {
		started, run.At = prepend([]string{s.root().name}, started), 0
	}
	run.Argv = started
	if run.Adds {
		run.Found = Word{Dynamic: true}
		g.replaced(&run)
	}
	if given {
		run.At = 0 // afterFlag has changed the words
		run.Adds, run.Replaces, run.Found = true, "{}", Word{Dynamic: true}
	}
	if started[0].Dynamic {
		g.opaque("the program that " + s.root().name + " starts is known only when it runs")
	}
	c.Runs = append(c.Runs, run)
}

// withModule puts the module of -m before its arguments. A private module stands for its package.
func (c *Command) withModule(started []Word) []Word {
	if n := len(c.Flags); n > 0 && c.Flags[n-1].Name == "-m" && c.Flags[n-1].HasValue {
		started = append([]Word{c.Flags[n-1].Value}, started...)
	}
	if len(started) == 0 {
		return started
	}
	if name, rest, _ := strings.Cut(started[0].Text, "."); strings.HasPrefix(rest, "_") {
		started = slices.Clone(started)
		started[0].Text = name
	}
	return started
}

// variables returns the assignments among the words of env and the like.
func (s *spec) variables(words []Word) (out []Operand) {
	if !s.has("variables") {
		return nil
	}
	for _, w := range words {
		if !w.flagLike() && strings.Contains(w.Text, "=") {
			out = append(out, Operand{Word: w, Role: "variable"})
		}
	}
	return out
}

// afterFlag returns the command after a flag such as -x of fd, up to a ";". The program replaces {} by what it finds,
// or appends it. ok is false without such a flag.
func (c *Command) afterFlag(s *spec, started []Word) (command []Word, ok bool) {
	if len(c.Flags) == 0 || s.has("module") {
		return started, false
	}
	last := c.Flags[len(c.Flags)-1]
	if last.spec == nil || !strings.HasPrefix(last.spec.values, "|") {
		return started, false
	}
	if last.HasValue {
		started = append([]Word{last.Value}, started...)
	}
	if end := slices.Index(started, Word{Text: ";"}); end >= 0 {
		if end+1 < len(started) {
			c.Opaque = cmp.Or(c.Opaque, "words follow the command that it runs")
		}
		started = started[:end]
	}
	return started, true
}

func (g *getopt) replaced(run *Run) {
	for _, f := range g.c.Flags {
		switch f.Name {
		case "-I":
			run.Replaces = f.Value.Text
		case "-i":
			run.Replaces = cmp.Or(f.Value.Text, "{}")
		case "-L", "-l", "-n":
			if one := f.Name == "-n" && f.Value == (Word{Text: "1"}); run.Replaces != "" && !one {
				g.opaque("a flag of xargs undoes another one")
			}
		}
	}
}

func (c *Command) directory() Word {
	for _, f := range slices.Backward(c.Flags) {
		if f.spec != nil && slices.Contains(f.spec.all, "--chdir") {
			return f.Value
		}
	}
	return Word{}
}

func (c *Command) hasFlag(name string) bool {
	return slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Name == name })
}

// shell handles a script after -c, in a file or on standard input. Unknown flags may change which of these it is.
func (g *getopt) shell(started []Word) {
	c, first := &g.c, Word{}
	c.Words = append(c.Words, started...)
	if len(started) > 0 {
		first = started[0]
	}
	text := c.hasFlag("-c")
	odd := !first.Dynamic && (first.Text == "-" || strings.HasPrefix(first.Text, "+"))
	g.shellOptions(odd && (text || first.Text != "-"))
	switch {
	case g.runsNothing():
	case text && len(started) > 0:
		c.Through = true
		c.Runs = append(c.Runs, Run{Script: first, Language: g.spec.name, Login: c.hasFlag("-l"), Argv: started[1:], At: len(g.argv) - len(started) + 1})
	case text || c.Through:
	default:
		if c.Input = len(started) == 0 || odd || c.hasFlag("-s"); !c.Input {
			c.Operands = append(c.Operands, Operand{Word: first, Kind: Read, Role: "script"})
		}
	}
}

// shellOptions records options of a shell that are not followed. others means that there are some besides its flags.
func (g *getopt) shellOptions(others bool) {
	c := &g.c
	unfollowed := func(f Flag) bool {
		name := f.Name
		if f.HasValue {
			name += "=" + f.Value.Text
		}
		return !f.Dynamic && !IsField(g.spec.harmless, name)
	}
	if c.hasFlag("-c") && slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Dynamic }) {
		c.Through, c.Opaque = true, "a shell runs a text known only when it runs"
	}
	if c.Through = c.Through || others || slices.ContainsFunc(c.Flags, unfollowed); c.Through {
		g.opaque("an option of " + g.spec.name + " is not followed")
	}
}

// runsNothing reports whether a shell only prints information about itself, or checks a known script.
func (g *getopt) runsNothing() bool {
	c := &g.c
	checks := c.hasFlag("-n") && c.Opaque == "" && !slices.ContainsFunc(g.argv, func(w Word) bool { return w.Dynamic })
	return checks || c.hasFlag("--version") || c.hasFlag("--help")
}

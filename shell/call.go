package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// simple follows a simple command in bash's order: its words, its assignments, its
// redirections, and then the command. Without a command the assignments are the
// shell's own; with one, redirections do not see them.
func (w *walker) simple(c *syntax.CallExpr, redirs []*syntax.Redirect, s *state) {
	args := w.words(c.Args, s)
	if len(args) == 0 {
		before := w.fork(s)
		for _, as := range c.Assigns {
			w.assign(as, s, false)
		}
		w.redirections(redirs, s)
		if w.mayFail(redirs, s) {
			w.join(s, before)
		}
		return
	}
	if w.posix {
		w.otherShell(args[0].text, len(c.Assigns) > 0, s, w.text(c))
	}
	saved := w.temporary(c.Assigns, args[0], s)
	for _, v := range saved {
		v.swap(w, s)
	}
	before, changes := w.fork(s), w.changes
	w.redirections(redirs, s)
	if w.changes != changes {
		w.join(s, before) // those of a program are expanded in its own process
	}
	for _, v := range saved {
		v.swap(w, s)
	}
	var unrun *state
	if w.mayFail(redirs, s) {
		unrun = w.fork(s)
	}
	changes = w.changes
	w.overridden += len(saved)
	w.run(args, s, w.text(c))
	w.overridden -= len(saved)
	for _, v := range saved {
		v.restore(w, s, w.changes != changes)
	}
	if unrun != nil {
		for _, v := range saved {
			v.restore(w, unrun, false)
		}
		w.join(s, unrun)
	}
}

// otherShell notes a command that another shell than bash understands differently:
// special builtins keep the assignments before them there.
func (w *walker) otherShell(name string, assigns bool, s *state, source string) {
	_, function := s.funcs.get(name)
	keeps := function || listed(": . break continue eval exec exit export readonly return set shift times trap unset", name)
	if keeps && assigns || listed("builtin declare typeset", name) {
		w.opaque(otherShell, source)
	}
}

const otherShell = "another shell than bash may read it differently"

// override is a variable that is set for one command.
type override struct {
	name   string
	before variable
	exists bool
}

// temporary follows the assignments before a command, and returns what was there.
func (w *walker) temporary(list []*syntax.Assign, program word, s *state) (saved []*override) {
	for _, as := range list {
		if w.steps <= 0 {
			break
		}
		if w.onlySplits(as, program, s) {
			continue
		}
		if as.Name == nil || as.Array != nil || as.Index != nil {
			w.assign(as, s, true)
			continue
		}
		changes := w.changes
		v := w.assigned(as.Value, s)
		if w.changes != changes {
			for _, o := range saved { // ${x:=y} in one value may be about another's name
				o.before.value = unknown()
			}
		}
		o := &override{name: as.Name.Value}
		o.before, o.exists = s.vars.get(o.name)
		if as.Append {
			v = w.appended(o.before, v)
		}
		saved = append(saved, o)
		w.setVar(o.name, v, s, true)
	}
	slices.Reverse(saved)
	return saved
}

// swap exchanges a variable's value for the other one.
func (o *override) swap(w *walker, s *state) {
	now, exists := s.vars.get(o.name)
	o.restore(w, s, false)
	o.before, o.exists = now, exists
}

// restore makes a variable what it was. What the command may have changed is unknown.
func (o *override) restore(w *walker, s *state, changed bool) {
	v := o.before
	switch {
	case changed:
		v.value = unknown()
		w.put(s, o.name, v)
	case o.exists:
		w.put(s, o.name, v)
	default:
		w.drop(s, o.name)
	}
}

// onlySplits reports IFS=x before read, which takes it for its own input. What it
// reads is not known in any case.
func (w *walker) onlySplits(as *syntax.Assign, program word, s *state) bool {
	_, function := s.funcs.get("read")
	if function || !program.is("read") || as.Name == nil || as.Name.Value != "IFS" || as.Array != nil || as.Index != nil {
		return false
	}
	w.assigned(as.Value, s)
	return true
}

// run follows a command whose words are expanded.
func (w *walker) run(args []word, s *state, source string) {
	if w.steps -= 1 + len(args)/4; w.steps <= 0 {
		w.exhausted()
		w.suffixes(args, source)
		return
	}
	if w.first == nil {
		w.first = args
	}
	first := args[0]
	if !first.known() || first.text == "" {
		w.opaque("the program is known only when it runs", source)
		if first.glob {
			w.globbedProgram(args, source)
		}
		// What follows may be a command all the same: denying rules look at it.
		if len(args) > 1 && !args[1].dynamic {
			w.add(policy.Effect{Kind: policy.Exec, Argv: policyWords(args[1:]), Possible: true, Source: source})
		}
		return
	}
	if f, ok := s.funcs.get(first.text); ok {
		if f.body != nil {
			w.callFunction(first.text, f.body, args[1:], s, source)
			return
		}
		w.opaque("it may be a function or a program", source)
	}
	w.builtinOrProgram(args, s, source)
}

// globbedProgram records, for denying rules, the programs that a pattern matches now.
func (w *walker) globbedProgram(args []word, source string) {
	names, _ := w.glob(args[0].text)
	for _, name := range names {
		if w.steps -= 1 + len(args)/4; w.steps <= 0 {
			w.exhausted()
			return
		}
		argv := append([]policy.Word{{Text: name}}, policyWords(args[1:])...)
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Possible: true, Source: source})
	}
}

// builtinOrProgram follows a command that is no function.
func (w *walker) builtinOrProgram(args []word, s *state, source string) {
	if w.builtin(args, s, source) {
		return
	}
	w.program(w.plainName(args, s), s, source)
}

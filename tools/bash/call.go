package bash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// call walks a simple command: assignments, then a command with its words.
func (w *walker) call(c *syntax.CallExpr, s *state) {
	args := w.words(c.Args, s)
	if len(args) == 0 {
		for _, as := range c.Assigns {
			w.assign(as, s, false)
		}
		return
	}
	before := make(map[string]value)
	for _, as := range c.Assigns {
		if w.steps <= 0 {
			break
		}
		if as.Name != nil {
			before[as.Name.Value] = s.vars[as.Name.Value]
		}
		if !w.onlySplits(as, args[0], s) {
			w.assign(as, s, true)
		}
	}
	changes := w.changes
	w.run(args, s, w.text(c))
	// They hold for this command; one that sets variables may have set these.
	for name, v := range before {
		if s.vars[name] = v; w.changes != changes {
			s.vars[name] = value{dynamic: true}
		}
	}
}

// onlySplits reports IFS=x before read, which takes it for its own input. What it
// reads is not known in any case.
func (w *walker) onlySplits(as *syntax.Assign, program word, s *state) bool {
	_, function := s.funcs["read"]
	if function || program.dynamic || program.text != "read" || as.Name == nil || as.Name.Value != "IFS" || as.Array != nil || as.Index != nil {
		return false
	}
	w.word(as.Value, s)
	return true
}

// run follows a command whose words are expanded.
func (w *walker) run(args []word, s *state, source string) {
	if w.steps -= 1 + len(args)/4; w.steps <= 0 {
		w.exhausted()
		w.suffixes(args, source)
		return
	}
	first := args[0]
	if first.dynamic || first.glob || first.text == "" {
		w.opaque("the program is known only when it runs", source)
		if first.glob {
			w.globbedProgram(args, source)
		}
		// What follows may be a command all the same: it is looked at by the
		// rules that deny.
		if len(args) > 1 && !args[1].dynamic {
			w.add(policy.Effect{Kind: policy.Exec, Argv: policyWords(args[1:]), Possible: true, Source: source})
		}
		return
	}
	if body, ok := s.funcs[first.text]; ok {
		w.callFunction(first.text, body, args[1:], s, source)
		if body != nil {
			return
		}
	}
	w.builtinOrProgram(args, s, source)
}

// globbedProgram records, for the rules that deny, the programs that a pattern
// matches now.
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

// callFunction walks the body of a function with the arguments of this call.
func (w *walker) callFunction(name string, body *syntax.Stmt, args []word, s *state, source string) {
	switch {
	case body == nil:
		w.opaque("it may be a function or a program", source)
		return
	case slices.Contains(w.calls, name):
		w.opaque("a function calls itself", source)
		return
	case len(w.calls) >= maxInner:
		w.opaque("functions call each other too deeply", source)
		return
	}
	outer, exact := s.args, s.exact
	s.args, s.exact = args, true
	for _, a := range args {
		s.exact = s.exact && !a.split
	}
	locals, doubts := w.locals, w.doubts
	w.locals = make(map[string]bool)
	w.doubts.left, w.doubts.broken = false, false
	w.calls = append(w.calls, name)
	w.stmt(body, s)
	w.calls = w.calls[:len(w.calls)-1]
	// What they were before the call, they are again.
	s.forget(w.locals)
	for name := range w.locals {
		delete(w.readonly, name)
	}
	w.doubts.left, w.doubts.broken = doubts.left, doubts.broken
	w.locals = locals
	s.args, s.exact = outer, exact
}

// builtinOrProgram follows a command that is no function.
func (w *walker) builtinOrProgram(args []word, s *state, source string) {
	if w.builtin(args, s, source) {
		return
	}
	args = w.plainName(args, s)
	if w.wrapper(args, s, source) {
		// A rule may still be about the wrapper itself.
		w.add(policy.Effect{Kind: policy.Exec, Argv: policyWords(args), Dirs: s.dirs, Possible: true, Source: source})
		return
	}
	w.program(args, s, source)
}

// program records that a program runs, and what its words say of files and hosts.
func (w *walker) program(args []word, s *state, source string) {
	if name, ok := policy.SystemProgram(args[0].text); ok && name == "git" {
		args, s = w.gitFolder(args, s)
		w.repository(s, source)
	}
	w.exec(policyWords(args), s, source)
	w.say(args)
	w.inputByDetour(args, s, source)
	usage := policy.Describe(w.expanded(args, s))
	contact := policy.Effect{Kind: policy.Net, Source: source, Method: method(args)}
	for _, o := range usage.Operands {
		if o.Kind == policy.Net {
			w.host(o.Word, args[0], contact)
			continue
		}
		w.operandPath(o, s, source)
		if o.Word.Dynamic && o.Kind == policy.Read && w.xargs > 0 {
			w.fromPipe(s, source)
		}
	}
	w.links(args, usage, s)
	if len(w.printed) < maxNames {
		w.printed = append(w.printed, usage.Names...)
	}
	if !usage.Known {
		w.suspect(policy.Suspects(policyWords(args)), s, source)
	}
}

// fromPipe adds what xargs' program reads if it is given names that the pipe
// prints: the rules that ask and deny are about these files, known or not.
func (w *walker) fromPipe(s *state, source string) {
	for _, o := range w.fed[:min(len(w.fed), maxNames)] {
		if o.Word.Dynamic {
			continue
		}
		for e := range w.pathEffects(policy.Read, o.Word.Text, s) {
			e.Tree, e.Part, e.Possible, e.Source = true, o.Part, true, source
			w.add(e)
		}
	}
}

// gitFolder takes "git -C folder" for what it means: git, run in that folder.
func (w *walker) gitFolder(args []word, s *state) ([]word, *state) {
	first, rest := args[0], args[1:]
	for len(rest) > 1 && rest[0].text == "-C" && !rest[0].dynamic && !rest[1].split && !rest[1].glob {
		if w.steps -= 3; w.steps <= 0 {
			w.exhausted()
			break
		}
		if len(rest) == len(args)-1 {
			s = w.fork(s)
		}
		w.cd([]word{{text: "--"}, rest[1]}, s, "git -C")
		rest = rest[2:]
	}
	if len(rest) == len(args)-1 {
		return args, s
	}
	return append([]word{first}, rest...), s
}

// expanded replaces patterns by the names they match now, and by their own text
// for the names they will match.
func (w *walker) expanded(args []word, s *state) []policy.Word {
	out := make([]policy.Word, 0, len(args))
	for _, a := range args {
		if len(out) > maxWords {
			return append(out, policy.Word{Dynamic: true})
		}
		if !a.glob {
			out = appendWords(out, []word{a})
			continue
		}
		if w.globInProc(a.text, s) {
			w.opaque("a pattern may match any file below /proc", a.text)
		}
		out = append(out, policy.Word{Text: operandText(unescape(a.text, false))})
		if len(s.dirs) != 1 {
			continue
		}
		dir, relative := s.dirs[0]+"/", true
		if strings.HasPrefix(a.text, "/") {
			dir, relative = "", false
		}
		names, complete := w.glob(dir + a.text)
		if !complete {
			out = append(out, policy.Word{Dynamic: true})
		}
		for _, name := range names {
			if relative {
				name = strings.TrimPrefix(name, dir)
			}
			out = append(out, policy.Word{Text: operandText(name)})
		}
	}
	return out
}

// glob lists what a pattern matches now.
func (w *walker) glob(pattern string) ([]string, bool) {
	g, ok := w.globs[pattern]
	if !ok {
		if w.steps -= globSteps; w.steps <= 0 {
			w.exhausted()
			return nil, false
		}
		g.names, g.complete = w.resolver.Glob(pattern, maxGlob)
		w.globs[pattern] = g
	}
	return g.names, g.complete
}

// globSteps is what it costs to list folders.
const globSteps = 20

// operandText makes a file name that looks like a flag an operand.
func operandText(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

// suspect adds the paths that the words of an unknown program may stand for, for
// the rules that ask and deny.
func (w *walker) suspect(args []policy.Word, s *state, source string) {
	for _, a := range args {
		for _, text := range mayBePaths(a.Text) {
			if a.Dynamic && text != "" {
				w.guardProc(policy.Operand{Word: policy.Word{Text: text, Dynamic: true}}, s, source)
			}
			if a.Dynamic || text == "" || strings.HasPrefix(text, "-") || len(text) > maxPath {
				continue
			}
			for e := range w.pathEffects(policy.Read, text, s) {
				e.Possible, e.Source = true, source
				w.add(e)
				e.Kind = policy.Write
				w.add(e)
			}
		}
	}
}

// mayBePaths returns what of a word may be a path: all of it, or the value of a flag.
// In -ofile/x that is file/x, in -rf/x it is /x.
func mayBePaths(text string) (paths [2]string) {
	if _, value, ok := strings.Cut(text, "="); ok {
		return [2]string{value}
	}
	i := strings.IndexByte(text, '/')
	switch {
	case i <= 0 || text[0] != '-':
		return [2]string{text}
	case i <= 2 || text[1] == '-':
		return [2]string{text[i:]}
	}
	return [2]string{text[i:], text[2:]}
}

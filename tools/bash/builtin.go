package bash

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// builtin follows the builtins that change what is known, or evaluate text. It
// reports whether nothing remains to be said of the command.
func (w *walker) builtin(args []word, s *state, source string) bool {
	name, rest := args[0].text, args[1:]
	switch name {
	case "exit", "times", ":", "true", "false":
	case "return":
		w.doubts.left = true
	case "break", "continue":
		w.doubts.broken = true
	case "export", "declare", "typeset", "local", "readonly", "let", "alias", "enable", "bind", "complete", "compgen", "compopt", "fc", "history", "coproc", "hash", "caller":
		// They define commands, or evaluate their words.
		w.opaque("the builtin "+name+" changes how the shell works", source)
	case "exec", "command", "builtin":
		return w.indirect(args, s, source)
	case "printf", "test", "[":
		w.evaluates(args, s, source)
		return false
	case ".", "source":
		w.opaque("it runs what stands in a file", source)
		if len(rest) > 0 && w.isInput(rest[0], s) {
			w.fromInput(s)
		}
		return false
	default:
		return w.stateful(name, rest, s, source)
	}
	return true
}

// stateful follows the builtins that change variables, folders or options.
func (w *walker) stateful(name string, rest []word, s *state, source string) bool {
	switch name {
	case "cd":
		w.cd(rest, s, source)
	case "pushd", "popd":
		w.changes++
		w.cdProc(rest, s, source)
		s.dirs = nil
	case "shift":
		w.changes++
		s.shift(len(rest) == 0 && !w.doubts.any())
	case "wait":
		w.wait(rest, s, source)
	case "set":
		if !plainSet(rest) {
			w.opaque("set changes how the shell reads the rest", source)
		}
	case "shopt":
		if !plainShopt(rest) {
			w.opaque("shopt changes how the shell reads the rest", source)
		}
	case "unset":
		w.unset(rest, s, source)
	case "read", "getopts", "mapfile", "readarray":
		w.readVariables(name, rest, s, source)
	case "eval":
		w.eval(rest, s, source)
	case "trap":
		w.trap(rest, s, source)
	default:
		return false
	}
	return true
}

// cd follows a change of folder.
func (w *walker) cd(args []word, s *state, source string) {
	w.changes++
	if w.cdProc(args, s, source) {
		s.dirs = nil
	}
	for len(args) > 0 && listed("-P -L --", args[0].text) {
		args = args[1:]
	}
	home := s.vars["HOME"]
	target := word{text: home.text, dynamic: home.dynamic, glob: home.glob}
	if len(args) > 0 {
		target = args[0]
	}
	before := s.dirs
	switch {
	case target.dynamic || target.glob || target.text == "-" || len(args) > 1:
		before = nil
	case target.text == "":
		return
	}
	s.dirs = nil
	if w.doubts.any() {
		return
	}
	for _, dir := range before {
		w.cdFrom(dir, target.text, before, s)
	}
}

// cdProc records that the shell may enter a directory by one of its names below /proc.
// It reports whether it certainly does.
func (w *walker) cdProc(args []word, s *state, source string) (enters bool) {
	for _, a := range args {
		if a.glob && w.globInProc(a.text, s) {
			w.opaque("a pattern may match any directory below /proc", source)
		}
		if a.dynamic || a.glob {
			w.guardProc(policy.Operand{Word: policy.Word{Text: literalPrefix(a.text), Dynamic: true}}, s, source)
			continue
		}
		for _, dir := range w.fromDirs(a.text, s) {
			if kind, _ := procPath(strings.TrimPrefix(dir, procDir)); inProc(dir) && kind != procPlain {
				w.opaque("it enters a directory by a name below /proc", source)
				enters = true
			}
		}
	}
	return enters
}

// cdFrom adds where cd leads from one folder. It resolves .. by name, unlike the
// kernel; both readings are kept.
func (w *walker) cdFrom(dir, target string, before []string, s *state) {
	if strings.HasPrefix(target, "/") {
		dir = ""
	}
	next := filepath.Clean(dir + "/" + target)
	s.dirs = appendNew(s.dirs, next)
	if !w.isDir(next) {
		s.failed = before
	}
	if !strings.Contains(target, "..") {
		return
	}
	if real := w.resolve(dir + "/" + target); real != "" && real != w.resolve(next) {
		s.dirs = appendNew(s.dirs, real)
	}
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

// plainSet reports whether set only changes when the shell stops or what it prints.
func plainSet(args []word) bool {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.dynamic || a.glob || len(a.text) < 2 || a.text[0] != '-' && a.text[0] != '+' {
			return false
		}
		if strings.HasSuffix(a.text, "o") && i+1 < len(args) {
			i++
			switch args[i].text {
			case "pipefail", "errexit", "nounset", "xtrace", "verbose", "noclobber", "errtrace", "functrace":
			default:
				return false
			}
		}
		if strings.Trim(a.text[1:], "euxvCETo") != "" {
			return false
		}
	}
	return true
}

// plainShopt reports whether shopt only sets options that matter little.
func plainShopt(args []word) bool {
	for _, a := range args {
		switch a.text {
		case "-s", "-u", "-q", "-p", "nullglob", "inherit_errexit":
		default:
			return false
		}
	}
	return true
}

// unset makes variables empty.
func (w *walker) unset(args []word, s *state, source string) {
	for _, a := range args {
		switch {
		case a.text == "-v" && !a.dynamic:
		case a.dynamic || a.glob || !syntax.ValidName(a.text):
			w.opaque("unset evaluates its operand", source)
		default:
			w.setVar(a.text, value{}, s, false)
			delete(s.vars, a.text)
			if len(w.calls) > 0 || w.doubts.any() {
				s.vars[a.text] = value{dynamic: true} // one of another function may come to light
			}
		}
	}
	for _, a := range args {
		if _, ok := s.funcs[a.text]; ok {
			s.funcs[a.text] = nil
		}
	}
}

// eval follows text that is literal.
func (w *walker) eval(args []word, s *state, source string) {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	texts := make([]string, len(args))
	for i, a := range args {
		if a.dynamic || a.glob {
			w.opaque("eval runs a text known only when it runs", source)
			return
		}
		texts[i] = a.text
	}
	w.script(strings.Join(texts, " "), s)
}

// indirect follows exec, command and builtin to the command they run.
func (w *walker) indirect(args []word, s *state, source string) bool {
	name, rest := args[0].text, args[1:]
	if name == "command" && len(rest) > 0 && listed("-v -V", rest[0].text) {
		return true
	}
	values, plain := "", ""
	switch name {
	case "command":
		plain = "-p"
	case "exec":
		values, plain = "-a", "-c -l"
	}
	_, rest, ok := skipOptions(rest, values, plain)
	switch {
	case !ok:
		w.opaque("an option of "+name+" is not followed", source)
	case len(rest) == 0:
	case rest[0].dynamic || rest[0].glob || rest[0].text == "":
		w.opaque("the program is known only when it runs", source)
	default:
		w.builtinOrProgram(rest, s, source)
	}
	return true
}

// evaluates refuses the forms of printf and test that evaluate an operand.
func (w *walker) evaluates(args []word, s *state, source string) {
	if args[0].text == "printf" {
		w.printf(args[1:], s, source)
		return
	}
	for i, a := range args[1:] {
		if i+2 >= len(args) {
			return
		}
		next := args[i+2]
		name := a.text == "-v" && !a.dynamic
		if name && (next.dynamic || !syntax.ValidName(next.text)) || a.dynamic && a.text == "" && next.dynamic {
			w.opaque("test may evaluate its operand", source)
		}
	}
}

// printf follows printf -v, which sets a variable.
func (w *walker) printf(args []word, s *state, source string) {
	switch {
	case len(args) == 0 || !strings.HasPrefix(args[0].text, "-v") && (!args[0].dynamic || args[0].text != "" && args[0].text[0] != '-'):
	case len(args) > 1 && args[0].text == "-v" && !args[0].dynamic && !args[1].dynamic && syntax.ValidName(args[1].text):
		w.setVar(args[1].text, value{dynamic: true}, s, false)
	default:
		w.opaque("printf may set a variable", source)
	}
}

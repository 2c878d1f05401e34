package bash

import (
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin follows the builtins that change what is known, or evaluate text. It
// reports whether nothing remains to be said of the command.
func (w *walker) builtin(args []word, s *state, source string) bool {
	rest := args[1:]
	switch args[0].text {
	case "cd":
		w.cd(rest, s)
	case "pushd", "popd":
		s.dirs = nil
	case "exit", "return", "break", "continue", "wait", "times", ":", "true", "false":
	case "shift":
		if len(rest) == 0 && s.exact && len(s.args) > 0 {
			s.args = s.args[1:]
		} else {
			s.exact = false
		}
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
		w.readVariables(rest, s, source)
	case "eval":
		w.eval(rest, s, source)
	case "trap":
		w.trap(rest, s, source)
	case ".", "source":
		w.opaque("it runs what stands in a file", source)
		return false
	case "exec", "command", "builtin":
		return w.indirect(args, s, source)
	case "export", "declare", "typeset", "local", "readonly", "let", "alias", "enable", "bind", "complete", "compgen", "compopt",
		"fc", "history", "coproc", "hash", "caller":
		w.opaque("the builtin "+args[0].text+" changes how the shell works", source)
	case "printf", "test", "[":
		w.evaluates(args, s, source)
		return false
	default:
		return false
	}
	return true
}

// cd follows a change of folder.
func (w *walker) cd(args []word, s *state) {
	for len(args) > 0 && (args[0].text == "-P" || args[0].text == "-L" || args[0].text == "--") && !args[0].dynamic {
		args = args[1:]
	}
	target := word{text: s.vars["HOME"].text, dynamic: s.vars["HOME"].dynamic}
	if len(args) > 0 {
		target = args[0]
	}
	if target.dynamic || target.glob || target.text == "-" || len(args) > 1 || s.dirs == nil {
		s.dirs = nil
		return
	}
	if target.text == "" {
		return
	}
	before := s.dirs
	s.dirs = nil
	for _, dir := range before {
		if strings.HasPrefix(target.text, "/") {
			dir = ""
		}
		// cd resolves .. by name, unlike the kernel; both readings are kept.
		next := filepath.Clean(dir + "/" + target.text)
		s.dirs = appendNew(s.dirs, next)
		if !w.resolver.IsDir(next) {
			s.failed = before
		}
		if real := w.resolver.Canonical(dir + "/" + target.text); strings.Contains(target.text, "..") && real != "" && real != w.resolver.Canonical(next) {
			s.dirs = appendNew(s.dirs, real)
		}
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
		case "-s", "-u", "-q", "-p", "nullglob", "failglob", "inherit_errexit":
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
		}
	}
	for _, a := range args {
		if _, ok := s.funcs[a.text]; ok {
			s.funcs[a.text] = nil
		}
	}
}

// readVariables follows builtins that set variables to what they read.
func (w *walker) readVariables(args []word, s *state, source string) {
	for _, a := range args {
		switch {
		case a.dynamic || a.glob:
			w.opaque("a variable's name is known only when it runs", source)
		case strings.HasPrefix(a.text, "-C") || strings.HasPrefix(a.text, "-c"):
			w.opaque("mapfile runs a text", source)
		case syntax.ValidName(a.text):
			w.setVar(a.text, value{dynamic: true}, s, false)
		case strings.ContainsAny(a.text, "[$`"):
			w.opaque("an array's index is evaluated", source)
		}
	}
}

// eval follows text that is literal.
func (w *walker) eval(args []word, s *state, source string) {
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

// trap follows the text of a trap, which runs at any later time.
func (w *walker) trap(args []word, s *state, source string) {
	for len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || !args[0].dynamic && strings.HasPrefix(args[0].text, "-") {
		return
	}
	if args[0].dynamic || args[0].glob {
		w.opaque("trap runs a text known only when it runs", source)
		return
	}
	later := s.clone()
	for name := range later.vars {
		later.vars[name] = value{dynamic: true}
	}
	later.dirs = nil
	w.script(args[0].text, later)
}

// indirect follows exec, command and builtin to the command they run.
func (w *walker) indirect(args []word, s *state, source string) bool {
	name, rest := args[0].text, args[1:]
	for len(rest) > 0 && !rest[0].dynamic && strings.HasPrefix(rest[0].text, "-") {
		flag := rest[0].text
		rest = rest[1:]
		switch {
		case flag == "--":
		case name == "command" && (flag == "-v" || flag == "-V"):
			return true
		case name == "command" && flag == "-p":
		case name == "exec" && flag == "-a" && len(rest) > 0:
			rest = rest[1:]
		case name == "exec" && (flag == "-c" || flag == "-l"):
		default:
			w.opaque("an option of "+name+" is not followed", source)
			return true
		}
	}
	if len(rest) == 0 {
		return true
	}
	if rest[0].dynamic || rest[0].glob || rest[0].text == "" {
		w.opaque("the program is known only when it runs", source)
		return true
	}
	w.builtinOrProgram(rest, s, source)
	return true
}

// evaluates refuses the forms of printf and test that evaluate an operand.
func (w *walker) evaluates(args []word, s *state, source string) {
	for i, a := range args[1:] {
		last := i+2 >= len(args)
		switch {
		case a.text == "-v" && !a.dynamic && !last:
			next := args[i+2]
			if next.dynamic || !syntax.ValidName(next.text) {
				w.opaque("the operand of -v is evaluated", source)
			} else if args[0].text == "printf" {
				w.setVar(next.text, value{dynamic: true}, s, false)
			}
		case args[0].text == "printf" && i == 0 && (a.dynamic && (a.text == "" || a.text[0] == '-') || strings.HasPrefix(a.text, "-v")):
			w.opaque("printf may set a variable", source)
		case args[0].text != "printf" && a.dynamic && a.text == "" && !last && args[i+2].dynamic:
			w.opaque("test may evaluate its operand", source)
		}
	}
}

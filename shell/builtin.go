package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// builtin follows the builtins that change what is known, or evaluate text. It reports
// whether nothing remains to be said of the command.
func (w *walker) builtin(args []word, s *state, source string) bool {
	name, rest := args[0].text, args[1:]
	switch name {
	case "times", ":", "true", "false":
	case "exit":
		s.dead = s.dead || plainStatus(rest)
	case "return":
		w.leaveFunction(rest, s)
	case "break", "continue":
		w.leaveLoop(name, rest, s, source)
	case "export", "declare", "typeset", "local", "readonly":
		w.declareWords(args, s, source)
	case "let", "enable", "bind", "complete", "compgen", "compopt", "fc", "coproc", "hash", "caller":
		// They define commands, or evaluate their words.
		w.opaque("the builtin `"+name+"` changes how the shell works", source)
	case "exec", "command", "builtin":
		return w.indirect(args, s, source)
	case "printf":
		w.printf(rest, s, source)
		return false
	case "test", "[":
		w.test(rest, source)
		return false
	case ".", "source":
		w.code("it runs what is in a file", source)
		if len(rest) > 0 && w.isInput(rest[0], s) {
			w.fromInput(s)
		}
		return false
	case "history":
		if !slices.ContainsFunc(rest, func(a word) bool { return !a.known() || !isNumber(a.text) }) {
			return false // a script has none
		}
		w.opaque("the builtin `history` reads and writes files", source)
	case "alias", "unalias":
		return false // a script expands none, unless shopt says so
	default:
		return w.stateful(name, rest, s, source)
	}
	return true
}

// stateful follows the builtins that change variables, directories or options.
func (w *walker) stateful(name string, rest []word, s *state, source string) bool {
	switch name {
	case "cd":
		w.cd(rest, s, source)
	case "pushd", "popd":
		w.cdProc(rest, s, source)
		w.setDirs(s, nil)
	case "shift":
		w.shift(rest, s)
	case "wait":
		w.wait(rest, s, source)
	case "set":
		w.set(rest, s, source)
	case "shopt":
		if s.noglobs = true; !plainShopt(rest) {
			w.opaque("`shopt` changes how the shell reads the rest", source)
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

// shift follows shift: nothing, or a number.
func (w *walker) shift(args []word, s *state) {
	n := 1
	if len(args) > 0 {
		n = -1
		if len(args) == 1 && args[0].known() && isInteger(args[0].text) {
			n = atoi(args[0].text)
		}
	}
	w.setParams(s, s.params.shift(n))
}

// set follows set: options that change when the shell stops or what it prints, and
// positional parameters.
func (w *walker) set(args []word, s *state, source string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.is("--"):
			w.setParams(s, params{words: slices.Clone(args[i+1:]), known: true})
			return
		case a.many || a.maybe("-") || a.dynamic && a.text == "" || a.glob && literalPrefix(a.text) == "":
			w.opaque("the words of `set` are known only when it runs", source)
			w.setParams(s, params{})
			return
		case a.text == "" || a.text[0] != '-' && a.text[0] != '+':
			w.setParams(s, params{words: slices.Clone(args[i:]), known: true})
			return
		case !a.known() || strings.Trim(a.text[1:], "euxvCETfo") != "":
			w.opaque("`set` changes how the shell reads the rest", source)
			return
		}
		if strings.HasSuffix(a.text, "o") && i+1 < len(args) {
			if i++; !listed("pipefail errexit nounset xtrace verbose noclobber errtrace functrace noglob", args[i].text) || !args[i].known() {
				w.opaque("`set` changes how the shell reads the rest", source)
			}
		}
	}
}

// plainShopt reports whether shopt only sets options that matter little.
func plainShopt(args []word) bool {
	return !slices.ContainsFunc(args, func(a word) bool {
		return !a.known() || !listed("-s -u -q -p nullglob inherit_errexit", a.text)
	})
}

// cd follows a change of directory.
func (w *walker) cd(args []word, s *state, source string) {
	unknown := w.cdProc(args, s, source)
	physical := false
	for len(args) > 0 && args[0].known() && len(args[0].text) > 1 && args[0].text[0] == '-' && strings.Trim(args[0].text, "-PLe@") == "" {
		physical = physical || strings.Contains(args[0].text, "P")
		args = args[1:]
	}
	target := wordOf(s.get("HOME").value)
	if len(args) > 0 {
		target = args[0]
	}
	before := s.dirs
	switch {
	case !unknown && target.is("-") && len(args) == 1 && s.left != nil:
		w.setDirs(s, s.left)
		s.left = slices.Concat(before, s.dirs)
		return
	case unknown || !target.known() || target.text == "-" || len(args) > 1:
		before = nil
	case target.text == "":
		return
	}
	if _, set := s.vars.get("CDPATH"); set {
		before = nil
	}
	w.setDirs(s, nil)
	if s.left = nil; target.known() {
		s.left = slices.Clone(before)
	}
	for _, dir := range before {
		w.cdFrom(dir, target.text, before, physical, s)
	}
}

// cdProc records that the shell may enter a directory by one of its names below /proc.
// It reports whether it certainly does.
func (w *walker) cdProc(args []word, s *state, source string) (enters bool) {
	for _, a := range args {
		if a.glob && w.globInProc(a.text, s) {
			w.opaque("a pattern may match any directory below /proc", source)
		}
		if !a.known() {
			w.guardProc(programs.Operand{Word: policy.Word{Text: literalPrefix(a.text), Dynamic: true}}, s, source)
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

// cdFrom adds where cd leads from one directory. It resolves .. by name, unlike the
// kernel; both readings are kept.
func (w *walker) cdFrom(dir, target string, before []string, physical bool, s *state) {
	if strings.HasPrefix(target, "/") {
		dir = ""
	}
	next := filepath.Clean(dir + "/" + target)
	s.addDir(next)
	if !w.isDir(next) {
		s.failed, s.left = before, nil
	}
	if !physical && !strings.Contains(target, "..") {
		return
	}
	if real := w.resolve(dir + "/" + target); real != "" && real != next {
		s.addDir(real)
	}
}

// eval follows text that is known.
func (w *walker) eval(args []word, s *state, source string) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	texts := make([]string, len(args))
	for i, a := range args {
		if !a.known() {
			w.opaque("`eval` runs a text known only when it runs", source)
			return
		}
		texts[i] = a.text
	}
	w.script(strings.Join(texts, " "), s)
}

// indirect follows exec, command and builtin to the command they run.
func (w *walker) indirect(args []word, s *state, source string) bool {
	c := programs.Parse(policyWords(args))
	switch {
	case slices.ContainsFunc(c.Flags, func(f programs.Flag) bool { return f.Name == "-v" || f.Name == "-V" }):
	case c.Opaque != "" && (len(c.Runs) == 0 || !c.Runs[0].Argv[0].Dynamic):
		w.opaque("an option of `"+args[0].text+"` is not followed", source)
	case len(c.Runs) == 0:
	default:
		rest := args[c.Runs[0].At:]
		if !rest[0].known() || rest[0].text == "" {
			w.opaque("the program is known only when it runs", source)
			break
		}
		w.builtinOrProgram(rest, s, source)
	}
	return true
}

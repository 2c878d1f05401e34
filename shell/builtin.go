package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/proc"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

// builtin follows a builtin. It reports whether nothing remains to be done for the command.
func (w *walker) builtin(args []word, s *state, source string) bool {
	name, rest := args[0].text, args[1:]
	if text := w.names[name]; w.renames && text != "" {
		w.scanSegment(text + " " + spaced(rest))
	}
	switch name {
	case "times", ":", "true", "false":
	case "exit":
		s.dead = s.dead || plainStatus(rest)
	case "return":
		w.leaveFunction(rest, s)
	case "break", "continue":
		w.leaveLoop(name, rest, s)
	case "export", "declare", "typeset", "local", "readonly":
		w.declareWords(args, s, source)
	case "let", "enable", "bind", "complete", "compgen", "compopt", "fc", "coproc", "hash", "caller", "history":
		// These define commands, evaluate words or access files, except in forms that only list or forget.
		if w.posix || !onlyLists(name, rest) {
			w.evaluates("the builtin `"+name+"` changes how the shell works", source)
			for i, a := range rest { // hash -p FILE NAME
				w.rename(a.text, spaced(rest[:min(i, 2)]), name == "hash")
			}
		}
	case "exec", "command", "builtin":
		return w.indirect(args, s, source)
	default:
		if w.stateful(name, rest, s, source) {
			return true
		}
		w.likeProgram(name, rest, s, source)
		return false
	}
	return true
}

// likeProgram follows the effects of a builtin that a program of the same name does not have.
func (w *walker) likeProgram(name string, rest []word, s *state, source string) {
	switch name {
	case "printf":
		w.printf(rest, s, source)
	case "test", "[":
		w.test(rest, source)
	case ".", "source":
		w.code("it runs what is in a file", source)
		if len(rest) > 0 && w.isInput(rest[0], s) {
			w.fromInput(s)
		}
	case "alias", "unalias": // bash scripts do not expand aliases without shopt
		for _, a := range rest {
			alias, text, _ := strings.Cut(a.text, "=")
			w.rename(alias, text, w.posix)
		}
		if w.posix {
			w.opaque(otherShell, source)
		}
	case "jobs":
		if slices.ContainsFunc(rest, func(a word) bool { return !a.known() || strings.Contains(a.text, "x") }) {
			w.evaluates("the builtin `jobs` runs a command", source)
		}
	}
}

// rename notes what a name stands for, once such names count.
func (w *walker) rename(name, text string, counts bool) {
	w.names[name], w.renames = text, w.renames || counts
}

// onlyLists reports whether history, hash or compgen changes and evaluates nothing. A script has no history.
func onlyLists(name string, rest []word) bool {
	flags, ok := map[string]string{"history": "", "hash": "-r -l", "compgen": "-c -b -k"}[name]
	switch {
	case !ok, name == "compgen" && len(rest) == 0:
		return false
	case len(rest) == 0:
		return true
	}
	return len(rest) == 1 && rest[0].known() && listed(flags, rest[0].text)
}

func (w *walker) stateful(name string, rest []word, s *state, source string) bool {
	switch name {
	case "cd":
		w.cd(rest, s, source)
	case "pushd", "popd":
		w.pushd(name, rest, s, source)
	case "shift":
		w.setParams(s, s.params.shift(countOf(rest)))
	case "set":
		w.set(rest, s, source)
	case "shopt":
		s.noglobs = true
		s.globstar = s.globstar || slices.ContainsFunc(rest, func(a word) bool { return a.is("globstar") })
		if slices.ContainsFunc(rest, func(a word) bool {
			return !a.known() || !listed("-s -u -q -p nullglob inherit_errexit globstar", a.text)
		}) {
			w.opaque("`shopt` changes how the shell reads the rest", source)
			w.renames = true
		}
	case "unset":
		w.unset(rest, s, source)
	case "read", "mapfile", "readarray", "wait":
		w.readVariables(name, rest, s, source)
	case "getopts":
		w.getopts(rest, s, source)
	case "eval":
		w.eval(rest, s, source)
		return true
	case "trap":
		w.trap(rest, s, source)
		return true
	default:
		return false
	}
	w.changes++
	return true
}

// countOf returns a numeric argument: 1 by default, -1 if unknown.
func countOf(args []word) int {
	switch {
	case len(args) == 0:
		return 1
	case len(args) == 1 && args[0].known() && texts.IsInteger(args[0].text):
		return atoi(args[0].text)
	}
	return -1
}

func (w *walker) set(args []word, s *state, source string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch unknown := !a.known() && a.prefix() == ""; {
		case a.is("--"):
			w.setParams(s, params{words: slices.Clone(args[i+1:]), known: true})
			return
		case unknown || a.many || a.maybe("-"):
			w.opaque("the words of `set` are known only when it runs", source)
			w.setParams(s, params{})
			return
		case !a.beginsWith("-+"):
			w.setParams(s, params{words: slices.Clone(args[i:]), known: true})
			return
		case !w.plainSetting(a, source):
			w.opaque("`set` changes how the shell reads the rest", source)
			return
		}
		for n := strings.Count(a.text, "o"); n > 0 && i+1 < len(args); n-- {
			if i++; !listed("pipefail errexit nounset xtrace verbose noclobber errtrace functrace noglob", args[i].text) || !args[i].known() {
				w.opaque("`set` changes how the shell reads the rest", source)
			}
		}
	}
}

// plainSetting reports whether a flag of set does not change how the shell reads a script. With -a each variable that is
// set is exported.
func (w *walker) plainSetting(a word, source string) bool {
	if a.beginsWith("-") && strings.Contains(a.text, "a") {
		w.exports = true
		w.add(policy.Effect{Kind: policy.Env, Source: source})
	}
	return a.known() && strings.Trim(a.text[1:], "aeuxvCETfo") == ""
}

// pushd follows pushd and popd. With one directory, pushd is cd. Other forms rotate the stack, which is not followed.
func (w *walker) pushd(name string, args []word, s *state, source string) {
	if name != "pushd" || len(args) != 1 || args[0].beginsWith("-+") {
		w.cdProc(args, s, source)
		w.setDirs(s, nil)
		return
	}
	before := slices.Clone(s.dirs)
	if w.cd(args, s, source); w.posix { // a shell without pushd keeps its directory
		joinDirs(&s.dirs, before)
	}
}

func (w *walker) cd(args []word, s *state, source string) {
	var next []string
	certain := false
	if !w.cdProc(args, s, source) {
		next, certain = w.cdTo(args, s)
	}
	before, left := s.dirs, s.left
	s.left = slices.Clone(before)
	joinDirs(&s.left, left) // cd may fail
	if w.setDirs(s, next); !certain {
		s.failed = before
		return
	}
	s.left = slices.Clone(before)
	for _, dir := range next { // a rule may deny entering the directory
		w.possible(policy.Read, dir, s, source)
	}
}

func (w *walker) cdTo(args []word, s *state) (next []string, certain bool) {
	target, physical, plain := s.cdTarget(args)
	switch {
	case !plain:
	case target.text == "-" && s.dirs != nil:
		next = s.left
	case target.text == "":
		next = s.dirs
	default:
		for _, dir := range s.dirs {
			joinList(&next, w.cdFrom(dir, target.text, physical, s))
		}
	}
	exists := w.beside == 0 && !s.disk.ran && !strings.Contains(target.text, "/..")
	certain = exists && len(next) > 0 && !slices.ContainsFunc(next, func(dir string) bool { return !w.isDir(dir, 0o111) })
	return next, certain
}

func (s *state) cdTarget(args []word) (target word, physical, plain bool) {
	isFlag := func(a word) bool { return a.known() && flagOfCd().MatchString(a.text) }
	for over := false; !over && len(args) > 0 && isFlag(args[0]); args = args[1:] {
		physical = physical || strings.Contains(args[0].text, "P")
		over = args[0].text == "--"
	}
	target = word{value: s.get("HOME").value}
	if len(args) > 0 {
		target = args[0]
	}
	_, elsewhere := s.vars.Get("CDPATH")
	elsewhere = elsewhere || s.strange && !target.beginsWith("/.")
	return target, physical, !elsewhere && target.known() && len(args) <= 1
}

var flagOfCd = lazyregexp.New(`^-(?:-|[PLe@]+)$`)

func (w *walker) cdProc(args []word, s *state, source string) (enters bool) {
	for _, a := range args {
		if a.glob && w.globInProc(a.text, s) {
			w.opaque("a pattern may match any directory below /proc", source)
		}
		if !a.known() {
			w.guardProc(programs.Operand{Word: policy.Word{Text: texts.LiteralPrefix(a.text), Dynamic: true}}, s, source)
			continue
		}
		for _, dir := range w.fromDirs(a.text, s) {
			if proc.Of(dir) != proc.Plain {
				w.opaque("it enters a directory by a name below /proc", source)
				enters = true
			}
		}
	}
	return enters
}

// cdFrom returns both interpretations of "..": lexical, and through links.
func (w *walker) cdFrom(dir, target string, physical bool, s *state) []string {
	if strings.HasPrefix(target, "/") {
		dir = ""
	}
	w.throughLinks(dir+"/"+target, s)
	next := filepath.Clean(dir + "/" + target)
	if physical || strings.Contains(target, "..") {
		if real := w.resolve(dir + "/" + target); real != "" {
			return []string{next, real}
		}
	}
	return []string{next}
}

func (w *walker) eval(args []word, s *state, source string) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if slices.ContainsFunc(args, func(a word) bool { return !a.known() }) {
		w.unknownCommand("`eval` runs a text known only when it runs", source)
		return
	}
	w.script(spaced(args), s)
}

func spaced(args []word) string { return strings.Join(textsOf(args), " ") }

func textsOf(args []word) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a.text
	}
	return out
}

func (w *walker) indirect(args []word, s *state, source string) bool {
	c := programs.Parse(policyWords(args))
	switch {
	case args[0].is("command") && slices.ContainsFunc(c.Flags, func(f programs.Flag) bool { return listed("-v -V", f.Name) }):
	case c.Opaque != "" && (len(c.Runs) == 0 || !c.Runs[0].Argv[0].Dynamic):
		w.evaluates("an option of `"+args[0].text+"` is not followed", source)
	case len(c.Runs) == 0:
	default:
		if rest := args[c.Runs[0].At:]; !w.unknownProgram(rest, source) && !w.builtin(rest, s, source) {
			w.programs(rest, s, source)
		}
	}
	return true
}

func (w *walker) printf(args []word, s *state, source string) {
	if len(args) == 0 {
		return
	}
	format := args[0]
	named := len(args) > 1 && args[1].known() && syntax.ValidName(args[1].text)
	switch begins := format.text != "" && format.text[0] != '-'; {
	case format.known() && !strings.HasPrefix(format.text, "-v"):
	case format.surelyNumber(), begins && format.dynamic && !format.many:
	case named && format.is("-v"):
		w.setVar(args[1].text, unknown(), s, false)
		text, _ := texts.Printed("printf", textsOf(args[2:]), "")
		w.keep(text)
	default:
		w.opaque("`printf` may set a variable", source)
		if w.keep(spaced(args)); len(args) > 1 && strings.HasPrefix(format.text, "-v") {
			w.scan(args[1].text) // an index is evaluated
		}
	}
}

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// wrapperFlags are the options of programs that run the rest of their words:
// those with a value in the next word, and those without. Others are not followed.
var wrapperFlags = map[string]struct {
	values, plain string
	operands      int // before the command
}{
	"timeout": {values: "-k -s --signal --kill-after", plain: "-v --verbose --foreground --preserve-status --signal=* --kill-after=* -k* -s*", operands: 1},
	"nice":    {values: "-n --adjustment", plain: "-n* --adjustment=* -[0-9]*"},
	"ionice":  {values: "-c -n", plain: "-t -c* -n*"},
	"nohup":   {},
	"setsid":  {plain: "-w -f -c --wait --fork --ctty"},
	"stdbuf":  {values: "-i -o -e", plain: "-i* -o* -e* --input=* --output=* --error=*"},
	"time":    {plain: "-p"},
	"env":     {values: "-u --unset", plain: "-i - --ignore-environment --unset=* -u* -0 --null"},
	"xargs": {
		values: "-n -P -L -d -s -E -I --max-args --max-procs --delimiter --max-lines --max-chars",
		plain:  "-0 -r -t -x --null --no-run-if-empty --verbose --exit --max-args=* --max-procs=* --delimiter=* -n* -P* -L* -d* -s* -I*",
	},
}

// shells run the text after -c.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "zsh": true, "ksh": true}

// wrapper follows programs that run the command in their words. It reports
// whether that command says everything.
func (w *walker) wrapper(args []word, s *state, source string) bool {
	name, ok := systemProgram(args[0].text)
	if !ok {
		return false
	}
	switch {
	case name == "find":
		w.findCommands(args, s, source)
		return false
	case shells[name]:
		return w.shell(name, args[1:], s, source)
	}
	spec, ok := wrapperFlags[name]
	if !ok {
		return false
	}
	replace, rest, ok := skipOptions(args[1:], spec.values, spec.plain)
	if !ok {
		w.opaque("an option of "+name+" is not followed", source)
		return false
	}
	if name == "env" {
		rest = w.envAssignments(rest, source)
	}
	for range spec.operands {
		if len(rest) > 0 && (rest[0].many || rest[0].glob) {
			w.opaque("the words of "+name+" are known only when it runs", source)
			return false
		}
		rest = rest[min(1, len(rest)):]
	}
	if name == "xargs" {
		rest = xargsWords(rest, replace)
	}
	if len(rest) == 0 {
		return false
	}
	if name == "xargs" {
		w.xargs++
		defer func() { w.xargs-- }()
	}
	w.external(rest, s, source)
	return true
}

// plainName takes a program that is named by a detour, such as /bin/../bin/ls, for
// what it is.
func (w *walker) plainName(args []word, s *state) []word {
	name := args[0].text
	if _, ok := systemProgram(name); ok || args[0].dynamic || !strings.HasPrefix(name, "/") && len(s.dirs) != 1 {
		return args
	}
	if !strings.HasPrefix(name, "/") {
		name = s.dirs[0] + "/" + name
	}
	i := strings.LastIndexByte(name, '/')
	real := w.resolve(name[:i+1]) + name[i:]
	if _, ok := systemProgram(real); !ok || i+1 == len(name) {
		return args
	}
	return append([]word{{text: real}}, args[1:]...)
}

// skipOptions returns what follows the options, and the value of -I. ok is false
// when an option is not listed.
func skipOptions(args []word, values, plain string) (replace string, rest []word, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !a.known() {
			return replace, args[i:], a.text != "" && a.text[0] != '-'
		}
		switch {
		case a.text == "--":
			return replace, args[i+1:], true
		case a.text == "" || a.text[0] != '-':
			return replace, args[i:], true
		case listed(values, a.text):
			if i++; i >= len(args) || args[i].dynamic && args[i].many {
				return "", nil, false
			}
			if a.text == "-I" {
				replace = args[i].text
			}
		case listed(plain, a.text):
			if strings.HasPrefix(a.text, "-I") {
				replace = a.text[2:]
			}
		default:
			return "", nil, false
		}
	}
	return replace, nil, true
}

// listed reports whether a flag is in a list in which * is any text.
func listed(list, flag string) bool {
	for f := range strings.FieldsSeq(list) {
		if before, _, star := strings.Cut(f, "*"); f == flag || star && strings.HasPrefix(flag, before) && len(flag) > len(before) {
			return true
		}
		if f == "-[0-9]*" && len(flag) > 1 && isNumber(flag[1:]) {
			return true
		}
	}
	return false
}

// envAssignments takes the assignments before env's command.
func (w *walker) envAssignments(args []word, source string) []word {
	for i, a := range args {
		name, _, ok := strings.Cut(a.text, "=")
		if !ok {
			if a.dynamic {
				// It may be an assignment, or the program.
				w.opaque("env's words are known only when it runs", source)
			}
			return args[i:]
		}
		if !syntax.ValidName(name) {
			name = ""
		}
		w.add(policy.Effect{Kind: policy.Env, Name: name, Source: source})
	}
	return nil
}

// xargsWords are the words of the command that xargs runs: its input adds words,
// or takes the place of a mark.
func xargsWords(args []word, replace string) []word {
	if len(args) == 0 {
		args = []word{{text: "echo"}}
	}
	if replace == "" {
		return append(args[:len(args):len(args)], word{dynamic: true, many: true})
	}
	out := make([]word, len(args))
	for i, a := range args {
		if before, _, ok := strings.Cut(a.text, replace); ok {
			a = word{text: before, dynamic: true}
		}
		out[i] = a
	}
	return out
}

// external follows a command that another program starts: no functions, and
// builtins only as the programs of the same name.
func (w *walker) external(args []word, s *state, source string) {
	if !args[0].known() || args[0].text == "" {
		w.opaque("the program is known only when it runs", source)
		return
	}
	if w.steps -= 1 + len(args)/4; w.steps <= 0 || w.wrapped >= maxInner {
		w.exhausted()
		w.suffixes(args, source)
		return
	}
	w.wrapped++
	defer func() { w.wrapped-- }()
	args = w.plainName(args, s)
	if w.wrapper(args, s, source) {
		return
	}
	w.program(args, s, source)
}

// findCommands follows the commands that find runs for each file. Where a word may be
// the end of one, or the beginning, nobody knows which words these are.
func (w *walker) findCommands(args []word, s *state, source string) {
	ends := func(a word) bool { return a.maybe(";") || a.maybe("+") }
	for i := 1; i < len(args); i++ {
		if !args[i].known() {
			value := i > 1 && args[i-1].known() && strings.HasPrefix(args[i-1].text, "-") && !args[i].many
			begins := args[i].maybe("-exec") || args[i].maybe("-ok")
			if begins && !value && slices.ContainsFunc(args[i+1:], ends) {
				w.opaque("a word of `find` may begin a command", source)
			}
			continue
		}
		if !listed("-exec -execdir -ok -okdir", args[i].text) {
			continue
		}
		dir, root := s, onlyRoot(args)
		if strings.HasSuffix(args[i].text, "dir") {
			dir, root = w.fork(s), "./"
			dir.dirs = nil
		}
		end := i + 1
		for end < len(args) && !args[end].is(";") && !(args[end].is("+") && args[end-1].is("{}")) {
			if !args[end].known() && ends(args[end]) {
				w.opaque("a word of `find` may end a command", source)
			}
			end++
		}
		if inner := foundWords(args[i+1:end], root); len(inner) > 0 {
			w.external(inner, dir, source)
		}
		i = end
	}
}

// onlyRoot returns the folder below which all is that find finds, if it is one.
func onlyRoot(args []word) string {
	root := args[1]
	if !root.known() || root.text == "" || root.text[0] == '-' {
		return ""
	}
	if next := args[2].text; next != "(" && next != "!" && !strings.HasPrefix(next, "-") {
		return ""
	}
	return root.text
}

// foundWords puts "some file below root" in the place of {}.
func foundWords(args []word, root string) []word {
	out := make([]word, len(args))
	for i, a := range args {
		if before, _, ok := strings.Cut(a.text, "{}"); ok {
			a = word{text: before, dynamic: true}
			if before == "" {
				a.text = root
			}
		}
		out[i] = a
	}
	return out
}

// shell follows bash -c TEXT. It reports false when there is no text to follow:
// the shell then runs a file, or its input.
func (w *walker) shell(name string, args []word, s *state, source string) bool {
	if len(args) > 0 && args[0].is("-n") && !slices.ContainsFunc(args, func(a word) bool { return !a.known() }) {
		return false // it only reads its script
	}
	args, command, ok := shellOptions(args)
	if !ok {
		w.opaque("an option of the shell is not followed", source)
		return false
	}
	if !command && (len(args) == 0 || args[0].text == "-" || args[0].text == "-s" || w.isInput(args[0], s)) {
		w.fromInput(s)
	}
	if !command && len(args) > 0 && args[0].known() {
		w.written(args[0].text, s, source)
	}
	if !command || len(args) == 0 {
		return false
	}
	text := args[0]
	if !text.known() {
		w.opaque("a shell runs a text known only when it runs", source)
		return true
	}
	if name != "bash" && differsFromBash(text.text) {
		w.opaque("another shell than bash may read it differently", source)
	}
	w.apart(s, func(sub *state) { w.script(text.text, w.child(sub, args[1:])) })
	return true
}

// shellOptions returns what follows a shell's options, and whether -c is one.
func shellOptions(args []word) (rest []word, command, ok bool) {
	for len(args) > 0 && !args[0].dynamic && len(args[0].text) > 1 && strings.IndexByte("-+", args[0].text[0]) >= 0 {
		flag := args[0].text
		args = args[1:]
		switch {
		case flag == "--version" || flag == "--help":
			return nil, false, true
		case flag == "--noprofile" || flag == "--norc":
			continue
		case flag == "-s":
			return append([]word{{text: flag}}, args...), false, true
		case strings.Trim(flag[1:], "ceuxo") != "":
			return nil, false, false
		}
		command = command || strings.Contains(flag, "c")
		if strings.HasSuffix(flag, "o") {
			if len(args) == 0 || !listed("pipefail errexit nounset", args[0].text) {
				return nil, false, false
			}
			args = args[1:]
		}
	}
	return args, command, true
}

// child is the state in which a shell that is started begins: args are $0 and what
// follows. Whether a variable is exported is not followed.
func (w *walker) child(s *state, args []word) *state {
	inner := w.fork(s)
	for name, v := range *s.vars.entries {
		if known, ok := w.env[name]; !ok || v.value != (value{text: known}) {
			w.put(inner, name, variable{value: unknown()})
		}
	}
	inner.funcs = newTable[function]()
	inner.params, inner.split = params{known: true}, s.split
	if len(args) > 0 {
		inner.params.words = args[1:]
		inner.params.known = !slices.ContainsFunc(args[:1], func(a word) bool { return a.many || a.glob })
	}
	return inner
}

// differsFromBash reports whether a text uses what only bash has.
func differsFromBash(text string) bool {
	for _, mark := range []string{"{", "$'", "[[", "<(", ">(", "&>", ">&", "((", "<<<", "function", "=(", "+=", "|&", "$\"", "**", "alias"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

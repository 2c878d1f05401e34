package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/table"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// simple follows a simple command in bash's order: words, assignments, redirections, command.
func (w *walker) simple(c *syntax.CallExpr, redirs []*syntax.Redirect, s *state) {
	args := w.words(c.Args, s)
	if len(args) == 0 {
		if w.posix && len(redirs) > 0 && len(c.Assigns) > 0 {
			w.opaque(otherShell, w.text(c)) // dash performs redirections first
		}
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
	at := w.fork(s) // redirections do not see the assignments
	passed := w.passed
	saved := w.temporary(c.Assigns, args[0], s)
	changes := w.changes
	w.redirections(redirs, at)
	if s.input, s.shown = at.input, at.shown; w.changes != changes && len(saved) > 0 {
		w.opaque("a redirection sets a variable", w.text(c))
	} else if w.changes != changes {
		w.join(s, at)
	}
	var unrun *state
	if w.mayFail(redirs, s) {
		unrun = w.fork(s)
	}
	changes = w.changes
	w.overridden += len(saved)
	w.run(args, s, w.text(c))
	w.overridden -= len(saved)
	for _, o := range saved {
		w.passed = passed
		o.saved.unsure = w.changes != changes
		w.restore(o.name, o.saved, s)
	}
	if unrun != nil {
		for _, o := range saved {
			w.restore(o.name, o.saved, unrun)
		}
		w.join(s, unrun)
	}
}

// otherShell reports what shells other than bash parse differently.
func (w *walker) otherShell(name string, assigns bool, s *state, source string) {
	_, function := s.funcs.Get(name)
	keeps := function || listed(": . break continue eval exec exit export local readonly return set shift times trap unset", name)
	if keeps && assigns || listed("builtin declare typeset", name) {
		w.opaque(otherShell, source)
	}
}

const otherShell = "another shell than bash may read it differently"

type override struct {
	name  string
	saved local
}

func (w *walker) temporary(list []*syntax.Assign, program word, s *state) (saved []override) {
	_, other := s.funcs.Get("read")
	for _, as := range list {
		if w.steps <= 0 {
			break
		}
		if as.Name == nil || as.Array != nil || as.Index != nil {
			w.opaque("an array is set for one command", w.text(as))
			w.assign(as, s, true)
			continue
		}
		changes := w.changes
		v := w.assigned(as.Value, s)
		if as.Name.Value == "IFS" && program.is("read") && !other {
			continue
		}
		if w.changes != changes {
			w.opaque("a value sets a variable", w.text(as))
		}
		before, exists := s.vars.Get(as.Name.Value)
		if as.Append {
			v = w.appended(before, v)
		}
		saved = append(saved, override{as.Name.Value, local{before: before, unset: !exists}})
		w.setVar(as.Name.Value, v, s, true)
	}
	slices.Reverse(saved)
	return saved
}

func (w *walker) run(args []word, s *state, source string) {
	if i := w.chosen(args); i >= 0 {
		w.eachChoice(args, i, s, source)
		return
	}
	if !w.spend(args, source, 0) {
		return
	}
	if w.first == nil {
		w.first = args
	}
	first := args[0]
	if w.unknownProgram(args, source) {
		return
	}
	if f, ok := s.funcs.Get(first.text); ok {
		if f.body != nil {
			w.callFunction(f.body, args[1:], s, source)
			return
		}
		w.opaque("it may be a function or a program", source)
		for _, body := range w.bodies[first.text] {
			w.callFunction(body, args[1:], w.fork(s), source)
		}
	}
	if !w.builtin(args, s, source) {
		w.programs(args, s, source)
	}
}

// unknownProgram reports a command whose program is not known. Rules may match the names that a pattern matches, and the
// words after it as a command.
func (w *walker) unknownProgram(args []word, source string) bool {
	if args[0].known() && args[0].text != "" {
		return false
	}
	w.unknownCommand("the program is known only when it runs", source, args[1:]...)
	rest := policyWords(args[1:])
	if len(rest) > 0 && !args[1].dynamic {
		w.add(policy.Effect{Kind: policy.Exec, Argv: rest, Possible: true, Source: source})
	}
	if !args[0].glob {
		return true
	}
	names, _ := w.glob(args[0].text)
	for _, name := range names {
		if w.steps -= 1 + len(args)/4; w.steps <= 0 {
			break
		}
		w.add(policy.Effect{Kind: policy.Exec, Argv: append([]policy.Word{{Text: name}}, rest...), Possible: true, Source: source})
	}
	return true
}

// followStarted follows the commands that a program starts. It reports whether the program does nothing else.
func (w *walker) followStarted(args []word, c *programs.Command, s *state, source string) bool {
	s = w.startedWith(c, args, s, source)
	if c.Input {
		w.fromInput(s, c.Words...)
	}
	if !c.Followed() {
		return false
	}
	unknown := slices.ContainsFunc(c.Runs, func(r programs.Run) bool { return r.Language == "" && r.Argv[0].Dynamic })
	if c.Opaque != "" && !unknown {
		w.unknownCommand(c.Opaque, source)
	}
	if c.Through && c.Opaque != "" && !unknown {
		return false
	}
	for _, run := range c.Runs {
		w.start(args, run, s, source)
	}
	return c.Through && len(c.Runs) > 0
}

// startedWith returns the state of the started commands, after the variables and scripts of the program.
func (w *walker) startedWith(c *programs.Command, args []word, s *state, source string) *state {
	outer := s
	if variables := func(o programs.Operand) bool { return o.Role == "variable" }; c.Name == "env" || slices.ContainsFunc(c.Operands, variables) {
		s = w.fork(s)
		w.cleared(c, args, s)
	}
	for _, o := range c.Operands {
		w.followRole(o, c.Through, outer, source)
		if name, text, ok := strings.Cut(o.Word.Text, "="); ok && o.Role == "variable" {
			w.put(s, name, variable{value: value{text: text, dynamic: o.Word.Dynamic}, exported: true})
		}
	}
	return s
}

// cleared follows the variables that env removes. Shells set some of them again.
func (w *walker) cleared(c *programs.Command, args []word, s *state) {
	has := func(name, value string) bool {
		return slices.ContainsFunc(c.Flags, func(f programs.Flag) bool { return f.Name == name && (f.Value.Dynamic || f.Value.Text == value) })
	}
	all := has("-i", "") || slices.ContainsFunc(args, func(a word) bool { return a.is("-") })
	for name := range s.vars.All() {
		switch {
		case !all && !has("-u", name):
		case listed("HOME PATH PWD OLDPWD SHELL TERM SHLVL HOSTNAME IFS", name):
			w.put(s, name, variable{value: unknown()})
		default:
			w.drop(s, name)
		}
	}
}

func (w *walker) followRole(o programs.Operand, through bool, s *state, source string) {
	switch o.Role {
	case "variable":
		name, text, _ := strings.Cut(o.Word.Text, "=")
		w.variableRuns(name, value{text: text, dynamic: o.Word.Dynamic}, true, s)
		if !syntax.ValidName(name) {
			name = ""
		}
		if through {
			w.add(policy.Effect{Kind: policy.Env, Name: name, Source: source})
		}
	case "script":
		w.written(o.Word.Text, o.Kind == programs.None, nil, s, source)
		made := o.Kind == programs.Read && !slices.ContainsFunc(w.fromDirs(o.Word.Text, s), w.exists)
		s.disk.code = s.disk.code || made
		if w.isInput(wordOf(o.Word), s) {
			w.fromInput(s)
		}
	}
}

func (w *walker) start(args []word, run programs.Run, s *state, source string) {
	words := w.startedWords(args, run)
	switch {
	case run.Language == "text":
		w.opaque("a text is split by rules of the program's own", source)
	case run.Language != "" && run.Script.Dynamic:
		w.keep(run.Script.Text + s.input)
		w.unknownCommand("a shell runs a text known only when it runs", source)
	case run.Language != "":
		posix := w.posix
		if w.posix = run.Language != "bash"; w.posix && !listed("sh dash", run.Language) {
			w.opaque(otherShell, source)
		}
		w.shell(run.Script.Text, words, run.Login, s, source)
		w.posix = posix
	default:
		if run.Dir != (programs.Word{}) {
			s = w.startedIn(wordOf(run.Dir), s, source)
		}
		if w.keep(s.input); run.Adds {
			w.xargs++
			defer func() { w.xargs-- }()
		}
		w.external(words, s, source)
	}
}

func (w *walker) startedIn(dir word, s *state, source string) *state {
	armed := w.touched.armed
	w.touched.armed = false
	s = w.fork(s)
	w.cd([]word{plainWord("--"), dir}, s, source)
	w.touched.armed, s.failed = armed, nil // the program starts there or not at all
	return s
}

func (w *walker) startedWords(args []word, run programs.Run) []word {
	out := make([]word, 0, len(run.Argv)+1)
	if run.At > 0 {
		out = append(out, args[run.At:run.At+len(run.Argv)]...)
	} else {
		for _, a := range run.Argv {
			out = append(out, wordOf(a))
		}
	}
	if run.Adds && run.Replaces == "" {
		return append(out, anyWords())
	}
	for i, a := range out {
		if before, _, ok := strings.Cut(a.text, run.Replaces); ok && run.Replaces != "" {
			if out[i] = (word{value: value{text: before, dynamic: true}}); before == "" {
				out[i].text, out[i].fresh = run.Found.Text, run.Found.Fresh && a.text == run.Replaces
			}
		}
	}
	return out
}

// programs resolves paths of programs such as /bin/../bin/ls.
func (w *walker) programs(args []word, s *state, source string) {
	name, raws := args[0].text, s.named(args[0].text)
	other := len(raws) == 0
	for _, raw := range raws {
		i := strings.LastIndexByte(raw, '/')
		real := w.resolve(raw[:i+1]) + raw[i:]
		_, plain := programs.System(name)
		_, system := programs.System(real)
		unnamed := args[0].dynamic || i+1 == len(raw)
		if plain || !system || unnamed {
			other = true
		} else {
			w.program(append([]word{plainWord(real)}, args[1:]...), s, source)
		}
	}
	if other {
		w.program(args, s, source)
	}
}

// external follows a command that is no function: a builtin stands for the program of the same name.
func (w *walker) external(args []word, s *state, source string) {
	if w.unknownProgram(args, source) || !w.spend(args, source, w.wrapped) {
		return
	}
	w.wrapped++
	defer func() { w.wrapped-- }()
	w.programs(args, s, source)
}

// shell follows a text that a new shell runs, with args as $0 and so on.
func (w *walker) shell(text string, args []word, login bool, s *state, source string) {
	w.apart(s, func(sub *state) {
		if sub = w.child(sub, args); login {
			w.login(s, sub, source)
		}
		w.script(text, sub)
		w.runTraps(sub)
	})
}

// child returns the initial state of a new shell with args as $0 and so on. Variables that were changed are unknown,
// since exports are not tracked.
func (w *walker) child(s *state, args []word) *state {
	inner := w.fork(s)
	for name, v := range s.vars.All() {
		if known, ok := w.env[name]; !ok || v.value != (value{text: known}) {
			w.put(inner, name, variable{value: unknown()})
		}
	}
	inner.funcs = table.New[function]()
	inner.params, inner.jobless = params{known: true}, true
	if len(args) > 0 {
		inner.params.words = args[1:]
		inner.params.known = !args[0].several()
		w.put(inner, "0", variable{value: args[0].value})
	}
	return inner
}

// login follows the startup files of a login shell, which may set any variable. Calls cannot write those of the user.
func (w *walker) login(s, inner *state, source string) {
	home := s.get("HOME")
	if home.text == "" || home.value != (value{text: w.env["HOME"]}) {
		w.opaque("a shell reads the files of a login in another home directory", source)
	}
	for name := range strings.FieldsSeq(".profile .bash_profile .bash_login .bashrc .bash_logout") {
		w.written(home.text+"/"+name, false, nil, s, source)
	}
	inner.vars, inner.strange = table.New[variable](), true
	w.put(inner, "HOME", home)
}

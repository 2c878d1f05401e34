package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// starts follows what a program starts, as its specification says: commands in its words
// or in those of find's expression, texts for a shell, its input. It reports whether that
// is all that the program does.
func (w *walker) starts(args []word, c *programs.Command, s *state, source string) bool {
	for _, o := range c.Operands {
		switch o.Role {
		case "variable":
			name, text, _ := strings.Cut(o.Word.Text, "=")
			w.variableRuns(name, value{text: text, dynamic: o.Word.Dynamic})
			if !syntax.ValidName(name) {
				name = ""
			}
			if c.Through {
				w.add(policy.Effect{Kind: policy.Env, Name: name, Source: source})
			}
		case "script":
			w.written(o.Word.Text, s, source)
			if w.isInput(word{text: o.Word.Text, dynamic: o.Word.Dynamic}, s) {
				w.fromInput(s)
			}
		}
	}
	if c.Input {
		w.fromInput(s)
	}
	if !c.Followed() {
		return false
	}
	unknown := slices.ContainsFunc(c.Runs, func(r programs.Run) bool { return r.Language == "" && r.Argv[0].Dynamic })
	if c.Opaque != "" && !unknown {
		w.opaque(c.Opaque, source)
	}
	if c.Through && c.Opaque != "" && !unknown {
		return false
	}
	for _, run := range c.Runs {
		w.start(args, run, s, source)
	}
	return c.Through && len(c.Runs) > 0
}

// start follows one command, or one text for a shell, that a program starts.
func (w *walker) start(args []word, run programs.Run, s *state, source string) {
	words := w.given(args, run)
	switch {
	case run.Language == "text":
		w.opaque("a text is split by rules of the program's own", source)
	case run.Language != "" && run.Script.Dynamic:
		w.opaque("a shell runs a text known only when it runs", source)
	case run.Language != "":
		posix := w.posix
		if w.posix = run.Language != "bash"; w.posix && differsFromBash(run.Script.Text) {
			w.opaque(otherShell, source)
		}
		w.apart(s, func(sub *state) { w.script(run.Script.Text, w.child(sub, words)) })
		w.posix = posix
	default:
		if run.Dir != (programs.Word{}) {
			s = w.fork(s)
			s.touched = &touched{}
			w.cd([]word{{text: "--"}, {text: run.Dir.Text, dynamic: run.Dir.Dynamic}}, s, source)
		}
		if run.Adds {
			w.xargs++
			defer func() { w.xargs-- }()
		}
		w.external(words, s, source)
	}
}

// given returns the words of what is started: input adds words, or takes the place of a
// mark.
func (w *walker) given(args []word, run programs.Run) []word {
	out := make([]word, 0, len(run.Argv)+1)
	if run.At > 0 {
		out = append(out, args[run.At:run.At+len(run.Argv)]...)
	} else {
		for _, a := range run.Argv {
			out = append(out, word{text: a.Text, dynamic: a.Dynamic, many: a.Many})
		}
	}
	if run.Adds && run.Replaces == "" {
		return append(out, word{dynamic: true, many: true})
	}
	for i, a := range out {
		if before, _, ok := strings.Cut(a.text, run.Replaces); ok && run.Replaces != "" {
			if out[i] = (word{text: before, dynamic: true}); before == "" {
				out[i].text = run.Found.Text
			}
		}
	}
	return out
}

// plainName takes a program that is named by a detour, such as /bin/../bin/ls, for
// what it is.
func (w *walker) plainName(args []word, s *state) []word {
	name := args[0].text
	if _, ok := programs.System(name); ok || args[0].dynamic || !strings.HasPrefix(name, "/") && len(s.dirs) != 1 {
		return args
	}
	if !strings.HasPrefix(name, "/") {
		name = s.dirs[0] + "/" + name
	}
	i := strings.LastIndexByte(name, '/')
	real := w.resolve(name[:i+1]) + name[i:]
	if _, ok := programs.System(real); !ok || i+1 == len(name) {
		return args
	}
	return append([]word{{text: real}}, args[1:]...)
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
	w.program(w.plainName(args, s), s, source)
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
	for _, mark := range []string{"{", "$'", "[[", "<(", ">(", "&>", ">&", "((", "<<<", "function", "=(", "=~", "+=", "|&", "$\"", "**", "alias"} {
		if strings.Contains(text, mark) {
			return true
		}
	}
	return false
}

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/texts"
)

// assign follows one assignment. exported means that commands see the variable.
func (w *walker) assign(as *syntax.Assign, s *state, exported bool) {
	if as.Name == nil {
		w.opaque("the name of a variable is computed", w.text(as))
		return
	}
	name := as.Name.Value
	switch {
	case as.Array != nil:
		numbers := w.elements(as.Array, s) && (!as.Append || s.get(name).isNumeric())
		for _, e := range as.Array.Elems {
			w.keep(w.text(e.Value) + " ")
		}
		w.setArray(name, numbers, s, exported)
	case as.Index != nil:
		w.index(as.Index, name, s)
		v := w.assigned(as.Value, s)
		w.keep(v.text)
		if listed("BASH_CMDS BASH_ALIASES", name) {
			w.rename(w.text(as.Index), v.text, true)
		}
		w.setArray(name, v.isDigits() && s.get(name).isNumeric(), s, exported)
	default:
		v := w.assigned(as.Value, s)
		if as.Append {
			v = w.appended(s.get(name), v)
		}
		w.setVar(name, v, s, exported)
	}
}

func (w *walker) appended(old variable, v value) value {
	w.steps -= len(old.text) / 64
	if old.integer || !old.known() || v.glob {
		return unknown()
	}
	return value{text: old.text + v.text, dynamic: v.dynamic}
}

func (w *walker) setArray(name string, numbers bool, s *state, exported bool) {
	w.setVar(name, unknown(), s, exported)
	v := s.get(name)
	v.array, v.number, v.orEmpty = true, numbers, numbers
	w.put(s, name, v)
}

// elements follows x=(…), whose words may become files of a program. It reports whether all are numbers.
func (w *walker) elements(a *syntax.ArrayExpr, s *state) (numbers bool) {
	numbers = true
	for _, e := range a.Elems {
		if text, plain := plainText(e.Value); plain && e.Index == nil {
			w.mayRead(text, s, text)
			numbers = numbers && texts.IsInteger(text)
			continue
		}
		if w.steps--; w.steps <= 0 {
			return false
		}
		if e.Index != nil {
			w.index(e.Index, "", s)
		}
		odd := slices.ContainsFunc(w.word(e.Value, s), func(a word) bool { return !a.isDigits() })
		numbers = numbers && !odd
	}
	return numbers
}

func (w *walker) index(x syntax.ArithmExpr, array string, s *state) {
	if !w.plainIndex(x, array, s) {
		w.evaluates("an array's index is evaluated", w.text(x))
	}
}

func (w *walker) assigned(wd *syntax.Word, s *state) value {
	if wd == nil {
		return value{}
	}
	if lit := wd.Lit(); strings.Contains(lit, ":~") {
		w.word(wd, s)
		return unknown() // bash expands ~ after each colon
	}
	b := &builder{}
	for i, p := range wd.Parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case ok && i == 0 && strings.HasPrefix(lit.Value, "~"):
			w.tilde(lit.Value, len(wd.Parts) == 1, b, s)
		case ok:
			if i > 0 && strings.Contains(lit.Value, ":~") {
				b.unknown(true)
			}
			b.literal(texts.Unescape(lit.Value, false), true)
		default:
			pe, ok := p.(*syntax.ParamExp)
			plain := ok && pe.Param != nil && plainExpansion(pe)
			if plain && len(wd.Parts) == 1 && s.get(pe.Param.Value).glob {
				return s.get(pe.Param.Value).value
			}
			w.part(p, b, s, true)
		}
	}
	return b.one()
}

func (w *walker) setVar(name string, v value, s *state, exported bool) {
	old := s.get(name)
	_, inherited := w.env[name]
	exports := inherited || exported || old.exported
	if exports || policy.IsDangerousEnv(name) {
		w.add(policy.Effect{Kind: policy.Env, Name: name, Source: name})
	}
	w.changes++
	w.steps--
	w.variableRuns(name, v, exports, s)
	if why := refusal(name, v, old); why != "" {
		w.opaque(why, name)
	}
	switch name {
	case "IFS":
		s.split, w.separators = true, w.separators+v.text
	case "OLDPWD":
		s.left = nil
	case "PATH", "BASH_ARGV0":
		w.put(s, name, variable{value: unknown()}) // see prints
	}
	if setByShell(name) {
		return
	}
	if len(v.text) > texts.MaxScript || old.array {
		v = unknown()
	} else if old.integer && v == (value{}) {
		v = value{dynamic: true, number: true, orEmpty: true} // bash converts it to 0
	}
	old.value, old.exported, old.unset = v, old.exported || exported, false
	w.put(s, name, old)
}

// refusal returns why setting a variable has other effects, or "" if it has none.
func refusal(name string, v value, old variable) string {
	switch {
	case listed(numericNames, name) && !v.isNumeric():
		return "the shell evaluates what " + name + " is set to"
	case old.integer && !v.isNumeric():
		return "the text of an integer is evaluated"
	case old.readonly || listed(fixedNames, name):
		return name + " cannot be set"
	case name == "PWD":
		return "the shell itself sets PWD"
	case name == "FUNCNEST":
		return "FUNCNEST ends functions early"
	}
	return ""
}

func (w *walker) unset(args []word, s *state, source string) {
	funcs, vars := true, true
	for _, a := range args {
		switch {
		case a.is("-v"):
			funcs = false
		case a.is("-f"):
			vars = false
		case a.many || !a.known() || !syntax.ValidName(a.text):
			w.evaluates("`unset` evaluates its operand", source)
		default:
			if vars {
				w.unsetVar(a.text, s)
			}
			if _, ok := s.funcs.Get(a.text); ok && funcs {
				w.setFunc(a.text, function{}, s)
			}
		}
	}
}

func (w *walker) unsetVar(name string, s *state) {
	if listed(numericNames, name) {
		w.opaque(name+" is not the shell's own any more", name)
	}
	array := s.get(name)
	array.array, array.hash = false, false
	w.put(s, name, array)
	w.setVar(name, value{}, s, false)
	switch _, own := s.locals.Get(name); {
	case len(w.calls) == 0:
		w.drop(s, name)
		return
	case !own && len(w.calls) > 1:
		w.opaque("a variable of a caller is unset", name)
	}
	w.put(s, name, variable{value: unknown()})
}

// valueFlags lists the flags of builtins that set variables: those with a value, and those without.
var valueFlags = map[string][2]string{"read": {"adinNptu", "ers"}, "mapfile": {"dnOsuCc", "t"}, "readarray": {"dnOsuCc", "t"}, "wait": {"p", "nf"}}

func (w *walker) readVariables(name string, args []word, s *state, source string) {
	v := unknown()
	switch {
	case name == "wait" && len(args) > 0 && args[0].surelyNumber():
		return
	case name == "wait":
		v = value{dynamic: true, number: true, orEmpty: true}
	default:
		w.keep(s.input + w.otherInput)
	}
	if slices.ContainsFunc(args, word.several) {
		w.opaque("the words of `"+name+"` are known only when it runs", source)
		return
	}
	for args = w.readFlags(name, args, v, s, source); name != "wait" && len(args) > 0; args = args[1:] {
		w.readName(args[0], v, name != "read", s, source)
	}
}

func (w *walker) getopts(args []word, s *state, source string) {
	if len(args) > 0 && args[0].maybe("--") {
		if !args[0].known() {
			w.opaque("the words of `getopts` are known only when it runs", source)
		}
		args = args[1:]
	}
	switch {
	case slices.ContainsFunc(args[:min(2, len(args))], word.several):
		w.opaque("the words of `getopts` are known only when it runs", source)
	case len(args) > 1:
		w.readName(args[1], unknown(), false, s, source)
	}
}

func (w *walker) readFlags(name string, args []word, v value, s *state, source string) []word {
	takes, plain := valueFlags[name][0], valueFlags[name][1]
	for len(args) > 0 {
		text := args[0].text
		unsure := !args[0].known() && !args[0].surelyNumber()
		if unsure && (text == "" || text[0] == '-') {
			w.opaque("a flag of `"+name+"` is known only when it runs", source)
			return nil
		}
		if len(text) < 2 || text[0] != '-' {
			return args
		}
		if args = args[1:]; text == "--" {
			return args
		}
		before, after := text[1:], ""
		n := strings.IndexAny(before, takes)
		if n >= 0 {
			before, after = before[:n], before[n+1:]
		}
		if strings.Trim(before, plain) != "" {
			w.opaque("a flag of `"+name+"` is not known", source)
		}
		if n < 0 {
			continue
		}
		operand := plainWord(after)
		if after == "" && len(args) == 0 {
			return nil
		} else if after == "" {
			operand, args = args[0], args[1:]
		}
		w.flagValue(name, text[n+1], operand, v, s, source)
	}
	return args
}

func (w *walker) flagValue(name string, flag byte, operand word, v value, s *state, source string) {
	switch {
	case name == "read" && flag == 'a', name == "wait":
		w.readName(operand, v, name == "read", s, source)
	case flag == 'C':
		w.evaluates("`"+name+"` runs a text", operand.text)
	}
}

func (w *walker) readName(a word, v value, array bool, s *state, source string) {
	switch {
	case !a.known():
		w.opaque("a variable's name is known only when it runs", source)
	case !syntax.ValidName(a.text):
		w.evaluates("an array's index is evaluated", a.text)
	case array:
		w.setArray(a.text, false, s, false)
	default:
		w.setVar(a.text, v, s, false)
	}
}

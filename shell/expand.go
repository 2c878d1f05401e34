package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/shell/texts"
)

func (w *walker) param(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	if name := w.pointee(p, s); name != "" {
		w.plainParam(name, b, s, quoted)
		return
	}
	if why := w.oddExpansion(p, s); why != "" {
		w.evaluates(why, w.text(p))
		w.keepValue(p, s)
		b.unknown(quoted)
		return
	}
	name := p.Param.Value
	single := p.Index == nil && w.isFollowed(p)
	switch {
	case plainExpansion(p):
		w.plainParam(name, b, s, quoted)
	case p.Length:
		b.value(someNumber(), quoted, s)
	case p.Exp != nil && single:
		w.expansion(p, b, s, quoted)
	case single && rewrites(p):
		w.rewritten(p, b, s, quoted)
	default:
		w.otherParam(p, b, s, quoted)
	}
}

// otherParam follows an expansion of which at most is known that it is a number.
func (w *walker) otherParam(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	w.expansionParts(p, s)
	index, ok := p.Index.(*syntax.Word)
	separate := p.Param.Value == "@" || ok && index.Lit() == "@"
	counts := ok && !p.Excl && w.numbersIn(p, index.Lit(), s)
	numbers := counts || p.Excl && !w.hashes
	number := numbers && !b.present
	b.unknown(quoted && !separate)
	b.cur.number, b.cur.orEmpty = number, counts && !separate
}

// numbersIn reports whether an element of an array is a number, or empty.
func (w *walker) numbersIn(p *syntax.ParamExp, index string, s *state) bool {
	v := s.get(p.Param.Value)
	other := p.Exp != nil && !w.wordInside(p.Exp.Word, w.fork(s)).isNumeric()
	changed := other || p.Repl != nil || index == "*"
	return !changed && v.array && v.isNumeric()
}

func (w *walker) isFollowed(p *syntax.ParamExp) bool {
	quotes := !p.Short && strings.ContainsAny(w.text(p), `"\`)
	return !quotes && !listed("@ *", p.Param.Value)
}

func (w *walker) plainParam(name string, b *builder, s *state, quoted bool) {
	switch {
	case name == "@" || name == "*":
		w.positional(name == "@", b, s, quoted)
	default:
		v, _ := w.operandOf(name, s)
		if w.steps -= len(v.text) / 64; w.steps <= 0 {
			v = unknown() // long values that are used often take too much time
		}
		b.value(v, quoted, s)
	}
}

func (w *walker) parameter(name string, s *state) value {
	switch {
	case name == "#" && s.params.count() >= 0:
		return value{text: strconv.Itoa(s.params.count())}
	case len(name) == 1 && strings.Contains("?#$!", name), listed(numericNames, name) && !w.posix:
		return value{dynamic: true, number: true, orEmpty: name == "!" && s.jobless}
	case name == "PWD" && len(s.dirs) == 1:
		return value{text: s.dirs[0]}
	case name == "-", setByShell(name):
		return unknown()
	}
	v := s.get(name)
	if v.refers {
		w.keep(s.get(v.text).text)
	}
	if v.array || v.refers {
		return unknown()
	}
	return v.value
}

const (
	fixedNames   = "UID EUID PPID BASHOPTS SHELLOPTS BASH_VERSINFO"
	numericNames = "RANDOM SRANDOM SECONDS LINENO UID EUID PPID BASHPID EPOCHSECONDS BASH_SUBSHELL OPTIND HISTCMD"
	shellNames   = "PWD OLDPWD IFS BASH BASHOPTS SHELLOPTS BASH_VERSION BASH_VERSINFO BASH_ARGV0 BASH_ARGV BASH_ARGC BASH_COMMAND " +
		"BASH_SOURCE BASH_LINENO BASH_REMATCH BASH_EXECUTION_STRING DIRSTACK FUNCNAME GROUPS HOSTNAME HOSTTYPE MACHTYPE OSTYPE OPTARG " +
		"PIPESTATUS REPLY MAPFILE READLINE_LINE READLINE_POINT COPROC EPOCHREALTIME PS4 OPTERR COMP_WORDBREAKS _ 0 TERM SHLVL COLUMNS " +
		"LINES BASH_ALIASES BASH_CMDS PATH SHELL BASH_LOADABLES_PATH"
)

func setByShell(name string) bool { return listed(shellNames, name) || listed(numericNames, name) }

func (w *walker) oddExpansion(p *syntax.ParamExp, s *state) string {
	switch {
	case computesName(p):
		return "the name of a variable is computed"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && !listed("u U L", p.Exp.Word.Lit()):
		return "the value of a variable is evaluated"
	case !p.Short && strings.ContainsAny(w.text(p), "'\"<>\\`") && !texts.PlainPattern(w.text(p)):
		return "quotes and redirections inside ${…} are read differently by bash"
	}
	if p.Index != nil && !w.plainIndex(p.Index, p.Param.Value, s) {
		return "an array's index is evaluated"
	}
	return ""
}

// computesName reports whether an expansion reads another variable than the one that it names.
func computesName(p *syntax.ParamExp) bool {
	other := p.Param == nil || p.NestedParam != nil || p.Flags != nil
	indirect := p.Excl && !keys(p) || p.Names != 0
	changed := p.Width || p.IsSet || len(p.Modifiers) > 0
	return other || indirect || changed
}

func keys(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	bare := *p
	bare.Index = nil
	return ok && plainExpansion(&bare) && index.Lit() == "@"
}

func (w *walker) plainIndex(x syntax.ArithmExpr, array string, s *state) bool {
	word, ok := x.(*syntax.Word)
	switch last, minus := x.(*syntax.UnaryArithm); {
	case minus && last.Op == syntax.Minus:
		return w.plainIndex(last.X, "", s)
	case !ok:
		return false
	case s.get(array).hash:
		if w.word(word, s); commandInIndex().MatchString(w.text(word)) {
			w.scan(w.text(word)) // arithmetic may evaluate the key later
		}
		return true
	}
	name := word.Lit()
	if p, short := word.Parts[0].(*syntax.ParamExp); short && p.Short && len(word.Parts) == 1 {
		name = "$" + p.Param.Value
	}
	return texts.IsInteger(name) || listed("@ *", name) || w.holdsNumber(name, s)
}

func plainExpansion(p *syntax.ParamExp) bool {
	changed := p.Slice != nil || p.Repl != nil || p.Exp != nil
	return !p.Length && !changed && p.Index == nil
}

func (w *walker) expansion(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	v, set := w.operandOf(p.Param.Value, s)
	op := p.Exp.Op.String()
	switch op[len(op)-1] {
	case '-', '=', '+':
		w.substitute(p, v, set, b, s, quoted)
	case '?':
		w.wordInside(p.Exp.Word, s) // bash ends if the variable has no value
		b.value(v, quoted, s)
	case '#', '%':
		pattern := w.wordInside(p.Exp.Word, s)
		text, ok := texts.Trim(op, v.text, pattern.text)
		if ok && v.known() && pattern.known() {
			b.value(value{text: text}, quoted, s)
			return
		}
		begin := ""
		if pattern.known() {
			begin = texts.Untrimmed(op, word{value: v}.prefix(), pattern.text)
		}
		b.value(value{dynamic: true, text: begin}, quoted, s)
	default:
		if op == "@" {
			op += p.Exp.Word.Lit()
		}
		text, ok := texts.Recased(op, v.text)
		plain := op[0] == '@' || p.Exp.Word == nil
		w.wordInside(p.Exp.Word, s)
		w.changed(text, ok && plain && v.known(), b, s, quoted)
	}
}

type answer int

const (
	perhaps answer = iota
	yes            // and its value is known
	no
)

func (w *walker) operandOf(name string, s *state) (value, answer) {
	if texts.IsNumber(name) {
		n, count := atoi(name), s.params.count()
		rest := s.params.shift(n - 1).words
		switch {
		case n == 0:
			return w.ownName(s), perhaps
		case count >= 0 && n > count:
			return value{}, no
		case len(rest) == 0 || rest[0].several():
			return unknown(), perhaps // preceding arguments may be any number
		case rest[0].known():
			return rest[0].value, yes
		}
		return rest[0].value, perhaps
	}
	v := w.parameter(name, s)
	found, exists := s.vars.Get(name)
	unsure := found.unset || !exists && s.strange
	ordinary := syntax.ValidName(name) && !setByShell(name)
	switch {
	case unsure || !ordinary || !v.known():
		return v, perhaps
	case exists:
		return v, yes
	}
	return v, no
}

func (w *walker) substitute(p *syntax.ParamExp, v value, set answer, b *builder, s *state, quoted bool) {
	op := p.Exp.Op.String()
	assigns := strings.HasSuffix(op, "=")
	there := set == yes && (op[0] != ':' || v.text != "")
	instead := !there
	if strings.HasSuffix(op, "+") {
		instead, v = there, value{}
	}
	switch {
	case set == perhaps:
		branch := w.fork(s)
		text := w.wordInside(p.Exp.Word, branch)
		if assigns {
			w.setVar(p.Param.Value, text, branch, false)
		}
		w.join(s, branch)
		b.unknown(quoted && !mayBeNone(p.Exp.Word))
	case !instead:
		w.wordInside(p.Exp.Word, w.fork(s)) // the effects are reported even if bash uses another value
		b.value(v, quoted, s)
	case assigns:
		text := w.wordInside(p.Exp.Word, s)
		w.setVar(p.Param.Value, text, s, false)
		b.value(w.parameter(p.Param.Value, s), quoted, s)
	case !quoted && s.split, quoted && mayBeNone(p.Exp.Word):
		w.wordInside(p.Exp.Word, s)
		b.unknown(false)
	default:
		if w.wordInPlace(p.Exp.Word, b, s, quoted); quoted {
			b.literal("", true)
		}
	}
}

func mayBeNone(wd *syntax.Word) (found bool) {
	if wd == nil {
		return false
	}
	syntax.Walk(wd, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok {
			all := p.Param != nil && p.Param.Value == "@"
			found = found || all || p.Index != nil
		}
		return !found
	})
	return found
}

func (w *walker) wordInside(wd *syntax.Word, s *state) value {
	b := &builder{}
	w.wordInPlace(wd, b, s, true)
	return b.one()
}

func (w *walker) wordInPlace(wd *syntax.Word, b *builder, s *state, quoted bool) {
	if wd == nil {
		return
	}
	for i, p := range wd.Parts {
		lit, ok := p.(*syntax.Lit)
		if ok && i == 0 && strings.HasPrefix(lit.Value, "~") {
			w.opaque("~ is expanded in the middle of a word", lit.Value)
		}
		if ok && !quoted && strings.ContainsAny(lit.Value, " \t\n") {
			b.value(value{text: lit.Value}, false, s)
			continue
		}
		w.part(p, b, s, quoted)
	}
}

func (w *walker) expansionParts(p *syntax.ParamExp, s *state) {
	if p.Exp != nil {
		branch := w.fork(s)
		w.wordInside(p.Exp.Word, branch)
		if strings.HasSuffix(p.Exp.Op.String(), "=") {
			w.setVar(p.Param.Value, unknown(), branch, false)
		}
		w.join(s, branch)
	}
	if p.Repl != nil {
		w.wordInside(p.Repl.Orig, s)
		w.wordInside(p.Repl.With, s)
	}
	if p.Slice == nil {
		return
	}
	if length, ok := p.Slice.Length.(*syntax.Word); p.Slice.Length != nil && (!ok || !texts.IsInteger(length.Lit())) {
		w.mayStop(s)
	}
	w.arithmetic(p.Slice.Offset, s)
	w.arithmetic(p.Slice.Length, s)
}

// mayStop records that bash may fail here and continue with the next line.
func (w *walker) mayStop(s *state) {
	failed := w.fork(s)
	for name, v := range s.vars.All() {
		if v.value = unknown(); len(w.calls)+w.overridden > 0 { // locals regain their previous values
			w.put(failed, name, v)
		}
	}
	w.exits = append(w.exits, failed)
}

func (w *walker) positional(separate bool, b *builder, s *state, quoted bool) {
	words, one := s.params.words, quoted && !separate // "$*" is one word, "$@" may be none
	switch {
	case !s.params.known:
		b.unknown(one)
		b.cur.many = b.cur.many || !one
	case len(words) == 0 && one:
		b.literal("", true)
	case len(words) > 1 && one && s.split:
		w.keep(spaced(words))
		b.unknown(true)
	default:
		for i, a := range words {
			if w.steps--; w.steps <= 0 {
				b.unknown(false)
				return
			}
			if i > 0 {
				b.separate(words[i-1], a, one)
			}
			if b.value(a.value, quoted, s); a.many {
				b.unknown(one)
			}
			b.cur.many = b.cur.many || a.glob && separate
		}
	}
}

func (b *builder) separate(before, after word, one bool) {
	if one && after.many {
		b.unknown(true) // no separator without arguments
	}
	if one {
		b.literal(" ", true)
	} else if !after.many && !before.many {
		b.cut()
	}
}

// ownName returns $0.
func (w *walker) ownName(s *state) value {
	v, known := s.vars.Get("0")
	if _, changed := s.vars.Get("BASH_ARGV0"); changed || !known {
		return unknown()
	}
	return v.value
}

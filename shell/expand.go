package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) param(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	if why := w.oddExpansion(p, s); why != "" {
		w.opaque(why, w.text(p))
		b.unknown(quoted)
		return
	}
	name := p.Param.Value
	separate := name == "@" || name == "*" || p.Index != nil
	switch {
	case plainExpansion(p) && (name == "@" || name == "*"):
		w.positional(name == "@", b, s, quoted)
	case plainExpansion(p) && isNumber(name):
		w.argument(name, b, s, quoted)
	case plainExpansion(p):
		v := w.parameter(name, s)
		if w.steps -= len(v.text) / 64; w.steps <= 0 {
			v = unknown() // long values, used often, take time
		}
		b.value(v, quoted, s)
	case p.Length:
		b.value(someNumber(), quoted, s)
	case p.Exp != nil && !separate:
		w.expansion(p, b, s, quoted)
	default:
		w.expansionParts(p, s)
		index, ok := p.Index.(*syntax.Word)
		numbers := !b.present && p.Excl && !w.hashes
		b.unknown(quoted && name != "@" && !(ok && index.Lit() == "@"))
		b.cur.number = numbers
	}
}

func (w *walker) parameter(name string, s *state) value {
	switch {
	case name == "#" && s.params.count() >= 0:
		return value{text: strconv.Itoa(s.params.count())}
	case len(name) == 1 && strings.Contains("?#$!", name) || listed(numericNames, name):
		return someNumber()
	case name == "-":
		return unknown()
	case name == "PWD" && len(s.dirs) == 1:
		return value{text: s.dirs[0]}
	case listed(shellNames, name):
		return unknown()
	}
	v := s.get(name)
	if v.array {
		return unknown()
	}
	return v.value
}

const (
	numericNames = "RANDOM SRANDOM SECONDS LINENO UID EUID PPID BASHPID EPOCHSECONDS BASH_SUBSHELL OPTIND HISTCMD"
	shellNames   = "PWD OLDPWD IFS BASH BASHOPTS SHELLOPTS BASH_VERSION BASH_VERSINFO BASH_ARGV0 BASH_ARGV BASH_ARGC BASH_COMMAND " +
		"BASH_SOURCE BASH_LINENO BASH_REMATCH BASH_EXECUTION_STRING DIRSTACK FUNCNAME GROUPS HOSTNAME HOSTTYPE MACHTYPE OSTYPE OPTARG " +
		"PIPESTATUS REPLY MAPFILE READLINE_LINE READLINE_POINT COPROC EPOCHREALTIME PS4 OPTERR COMP_WORDBREAKS _ 0 TERM SHLVL COLUMNS " +
		"LINES BASH_ALIASES BASH_CMDS PATH SHELL BASH_LOADABLES_PATH"
)

func (w *walker) oddExpansion(p *syntax.ParamExp, s *state) string {
	named := p.Excl && !keys(p) || p.Names != 0 || p.Width || p.IsSet || len(p.Modifiers) > 0
	switch {
	case p.Param == nil || p.NestedParam != nil || p.Flags != nil || named:
		return "the name of a variable is computed"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		return "the value of a variable is evaluated"
	case !p.Short && strings.ContainsAny(w.text(p), "'\"<>\\`"):
		return "quotes and redirections inside ${…} are read differently by bash"
	}
	if p.Index != nil && !w.plainIndex(p.Index, s) {
		return "an array's index is evaluated"
	}
	return ""
}

func keys(p *syntax.ParamExp) bool {
	index, ok := p.Index.(*syntax.Word)
	bare := *p
	bare.Index = nil
	return ok && plainExpansion(&bare) && index.Lit() == "@"
}

func (w *walker) plainIndex(x syntax.ArithmExpr, s *state) bool {
	word, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	name := word.Lit()
	if p, short := word.Parts[0].(*syntax.ParamExp); short && p.Short && len(word.Parts) == 1 {
		name = "$" + p.Param.Value
	}
	return isInteger(name) || listed("@ *", name) || w.holdsNumber(name, s)
}

func plainExpansion(p *syntax.ParamExp) bool {
	cut := p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil
	return !p.Length && !cut
}

func (w *walker) expansion(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	v, set := w.operandOf(p.Param.Value, s)
	op := p.Exp.Op.String()
	switch op[len(op)-1] {
	case '-', '=', '+':
		w.substitute(p, v, set, b, s, quoted)
	case '?':
		w.wordInside(p.Exp.Word, s) // bash ends if there is no value
		b.value(v, quoted, s)
	case '#', '%':
		pattern := w.wordInside(p.Exp.Word, s)
		if text, ok := trim(op, v, pattern); ok {
			b.value(value{text: text}, quoted, s)
			return
		}
		b.value(unknown(), quoted, s)
	default:
		w.wordInside(p.Exp.Word, s)
		b.unknown(quoted)
	}
}

type answer int

const (
	perhaps answer = iota
	yes            // and its value is known
	no
)

func (w *walker) operandOf(name string, s *state) (value, answer) {
	if isNumber(name) {
		n, count := atoi(name), s.params.count()
		switch {
		case count < 0 || n == 0:
			return unknown(), perhaps
		case n > count:
			return value{}, no
		case s.params.words[n-1].known():
			return s.params.words[n-1].value(), yes
		}
		return s.params.words[n-1].value(), perhaps
	}
	v := w.parameter(name, s)
	found, exists := s.vars.get(name)
	switch {
	case found.unset || !exists && s.strange || !syntax.ValidName(name) || listed(shellNames, name) || listed(numericNames, name) || !v.known():
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
		w.wordInside(p.Exp.Word, w.fork(s)) // its effects are reported anyway
		b.value(v, quoted, s)
	case assigns:
		text := w.wordInside(p.Exp.Word, s)
		w.setVar(p.Param.Value, text, s, false)
		b.value(w.parameter(p.Param.Value, s), quoted, s)
	case quoted && mayBeNone(p.Exp.Word) || !quoted && s.split:
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
		p, ok := n.(*syntax.ParamExp)
		found = found || ok && (p.Index != nil || p.Param != nil && p.Param.Value == "@")
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
	if length, ok := p.Slice.Length.(*syntax.Word); p.Slice.Length != nil && (!ok || !isInteger(length.Lit())) {
		w.mayStop(s)
	}
	for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
		if x != nil {
			w.arithmetic(x, s)
		}
	}
}

// mayStop records that bash may fail here and continue with the next line.
func (w *walker) mayStop(s *state) {
	failed := w.fork(s)
	for name, v := range *s.vars.entries {
		if v.value = unknown(); len(w.calls)+w.overridden > 0 { // locals get their previous value
			w.put(failed, name, v)
		}
	}
	w.exits = append(w.exits, failed)
}

func (w *walker) positional(separate bool, b *builder, s *state, quoted bool) {
	words := s.params.words
	switch {
	case !s.params.known:
		b.unknown(quoted && !separate)
		b.cur.many = b.cur.many || !quoted || separate
	case len(words) == 0:
		if quoted && !separate {
			b.literal("", true) // "$*" is one word, "$@" is none
		}
	case quoted && !separate && s.split && len(words) > 1:
		b.unknown(true)
	default:
		for i, a := range words {
			if w.steps--; w.steps <= 0 {
				b.unknown(false)
				return
			}
			if i > 0 && quoted && !separate {
				if a.many {
					b.unknown(true) // without arguments there is no separator
				}
				b.literal(" ", true)
			} else if i > 0 && !a.many && !words[i-1].many {
				b.cut()
			}
			w.knownWord(a, b, s, quoted, separate)
		}
	}
}

func (w *walker) argument(name string, b *builder, s *state, quoted bool) {
	n, count := atoi(name), s.params.count()
	if count >= 0 && n > count {
		if quoted {
			b.literal("", true)
		}
		return
	}
	rest := s.params.shift(n - 1)
	if len(rest.words) == 0 || rest.words[0].many || rest.words[0].glob {
		b.unknown(quoted) // preceding arguments may be any number
		return
	}
	w.steps -= len(rest.words[0].text) / 64
	w.knownWord(rest.words[0], b, s, quoted, false)
}

func (w *walker) knownWord(a word, b *builder, s *state, quoted, separate bool) {
	b.value(a.value(), quoted, s)
	if a.many {
		b.unknown(quoted && !separate)
	} else if a.glob {
		b.cur.many = b.cur.many || separate
	}
}

func (p params) count() int {
	if !p.known || slices.ContainsFunc(p.words, func(a word) bool { return a.many || a.glob }) {
		return -1
	}
	return len(p.words)
}

func (p params) shift(n int) params {
	count := p.count()
	switch {
	case n < 0 || !p.known:
		return params{}
	case count >= 0 && n > count:
		return p // shift fails and removes none
	}
	for i, a := range p.words {
		if i == n {
			return params{words: p.words[n:], known: true}
		}
		if a.many || a.glob {
			return params{}
		}
	}
	return params{known: count >= 0}
}

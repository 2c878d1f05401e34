package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param expands $name and ${…}.
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
	case plainExpansion(p):
		w.plain(name, b, s, quoted)
	case p.Length:
		b.value(w.length(p, s), quoted, s)
	case p.Exp != nil && !separate:
		w.expansion(p, b, s, quoted)
	default:
		w.expansionParts(p, s)
		// "${x[@]}" is any number of words.
		b.unknown(quoted && !w.manyElements(p))
	}
}

// manyElements reports whether an expansion in quotes is any number of words.
func (w *walker) manyElements(p *syntax.ParamExp) bool {
	if word, ok := p.Index.(*syntax.Word); ok && word.Lit() == "@" {
		return true
	}
	return p.Param.Value == "@"
}

// plain expands $name.
func (w *walker) plain(name string, b *builder, s *state, quoted bool) {
	if isNumber(name) {
		w.argument(name, b, s, quoted)
		return
	}
	v := w.parameter(name, s)
	w.steps -= len(v.text) / 64 // long values, used often, cost time
	if w.steps <= 0 {
		b.unknown(false)
		return
	}
	b.value(v, quoted, s)
}

// parameter returns the value of $name, which is no positional parameter.
func (w *walker) parameter(name string, s *state) value {
	switch {
	case name == "#" && s.params.count() >= 0:
		return value{text: itoa(s.params.count())}
	case len(name) == 1 && strings.Contains("?#$!", name) || numericNames[name]:
		return someNumber()
	case name == "-":
		return unknown()
	case name == "PWD" && len(s.dirs) == 1:
		return value{text: s.dirs[0]}
	case shellNames[name]:
		return unknown()
	}
	v := s.get(name)
	if v.array {
		return unknown()
	}
	return v.value
}

// numericNames are variables that the shell sets to numbers.
var numericNames = map[string]bool{
	"RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true, "UID": true, "EUID": true, "PPID": true, "BASHPID": true,
	"EPOCHSECONDS": true, "BASH_SUBSHELL": true, "OPTIND": true, "HISTCMD": true,
}

// shellNames are variables that the shell sets to text.
var shellNames = map[string]bool{
	"PWD": true, "OLDPWD": true, "IFS": true, "BASH": true, "BASHOPTS": true, "SHELLOPTS": true, "BASH_VERSION": true, "BASH_VERSINFO": true,
	"BASH_ARGV0": true, "BASH_ARGV": true, "BASH_ARGC": true, "BASH_COMMAND": true, "BASH_SOURCE": true, "BASH_LINENO": true, "BASH_REMATCH": true,
	"BASH_EXECUTION_STRING": true, "DIRSTACK": true, "FUNCNAME": true, "GROUPS": true, "HOSTNAME": true, "HOSTTYPE": true, "MACHTYPE": true,
	"OSTYPE": true, "OPTARG": true, "PIPESTATUS": true, "REPLY": true, "MAPFILE": true, "READLINE_LINE": true, "READLINE_POINT": true, "COPROC": true,
	"EPOCHREALTIME": true, "PS4": true, "OPTERR": true, "COMP_WORDBREAKS": true, "_": true, "0": true, "TERM": true, "SHLVL": true, "COLUMNS": true, "LINES": true, "BASH_ALIASES": true,
	"BASH_CMDS": true, "PATH": true, "SHELL": true, "BASH_LOADABLES_PATH": true,
}

// oddExpansion names expansions that evaluate text, or that the two parsers read
// differently.
func (w *walker) oddExpansion(p *syntax.ParamExp, s *state) string {
	named := p.Excl || p.Names != 0 || p.Width || p.IsSet || len(p.Modifiers) > 0
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

// plainIndex reports whether an index is a number, or a variable that is certainly one,
// or all elements.
func (w *walker) plainIndex(x syntax.ArithmExpr, s *state) bool {
	word, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	name := word.Lit()
	if p, short := word.Parts[0].(*syntax.ParamExp); short && p.Short && len(word.Parts) == 1 {
		name = "$" + p.Param.Value
	}
	if isInteger(name) || name == "@" || name == "*" {
		return true
	}
	_, number := w.numberIn(name, s)
	return number
}

// plainExpansion reports whether only the value itself is asked for.
func plainExpansion(p *syntax.ParamExp) bool {
	cut := p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil
	return !p.Length && !cut
}

// length is ${#x}.
func (w *walker) length(p *syntax.ParamExp, s *state) value {
	name := p.Param.Value
	if v := s.get(name); p.Index == nil && syntax.ValidName(name) && !shellNames[name] && !numericNames[name] && !v.array && v.known() && isASCII(v.text) {
		return value{text: itoa(len(v.text))}
	}
	return someNumber()
}

// expansion expands ${x:-y}, ${x%y} and the like.
func (w *walker) expansion(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	v, set := w.operandOf(p.Param.Value, s)
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		w.substitute(p, v, set, b, s, quoted)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		w.wordInside(p.Exp.Word, s)
		if set != yes || v.dynamic || v.text == "" {
			w.mayStop(s)
		}
		b.value(v, quoted, s)
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		pattern := w.wordInside(p.Exp.Word, s)
		if text, ok := trim(p.Exp.Op, v, pattern); ok {
			b.value(value{text: text}, quoted, s)
			return
		}
		b.value(value{dynamic: true, number: false}, quoted, s)
	default:
		w.wordInside(p.Exp.Word, s)
		b.unknown(quoted)
	}
}

// answer is yes, no, or not known.
type answer int

const (
	perhaps answer = iota
	yes
	no
)

// operandOf returns what a parameter in ${…} is, and whether it exists.
func (w *walker) operandOf(name string, s *state) (value, answer) {
	if isNumber(name) {
		n := atoi(name)
		count := s.params.count()
		switch {
		case count < 0 || n == 0:
			return unknown(), perhaps
		case n > count:
			return value{}, no
		}
		return s.params.words[n-1].value(), yes
	}
	v := w.parameter(name, s)
	found, exists := s.vars.get(name)
	switch {
	case found.unset:
		return v, perhaps
	case !syntax.ValidName(name) || shellNames[name] || numericNames[name] || !v.known():
		return v, perhaps
	case exists:
		return v, yes
	}
	return v, no
}

// substitute expands ${x-y}, ${x=y} and ${x+y}, with and without a colon.
func (w *walker) substitute(p *syntax.ParamExp, v value, set answer, b *builder, s *state, quoted bool) {
	op := p.Exp.Op
	colon := op == syntax.DefaultUnsetOrNull || op == syntax.AssignUnsetOrNull || op == syntax.AlternateUnsetOrNull
	assigns := op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull
	instead := set // whether the word takes the value's place
	if colon && set == yes && v.text == "" {
		instead = no
	}
	if op != syntax.AlternateUnset && op != syntax.AlternateUnsetOrNull {
		instead = map[answer]answer{yes: no, no: yes}[instead]
	} else {
		v = value{} // ${x+y} without x is nothing
	}
	switch {
	case instead == no:
		w.wordInside(p.Exp.Word, w.fork(s)) // what it contains is reported all the same
		b.value(v, quoted, s)
	case instead == yes && assigns:
		text := w.wordInside(p.Exp.Word, s)
		w.setVar(p.Param.Value, text, s, false)
		b.value(w.parameter(p.Param.Value, s), quoted, s)
	case instead == yes && (quoted && mayBeNone(p.Exp.Word) || !quoted && s.split):
		w.wordInside(p.Exp.Word, s)
		b.unknown(false)
	case instead == yes:
		if w.wordInPlace(p.Exp.Word, b, s, quoted); quoted {
			b.literal("", true)
		}
	default:
		branch := w.fork(s)
		text := w.wordInside(p.Exp.Word, branch)
		if assigns {
			w.setVar(p.Param.Value, text, branch, false)
		}
		w.join(s, branch)
		b.unknown(quoted && !mayBeNone(p.Exp.Word))
	}
}

// mayBeNone reports whether a word may be any number of words in quotes, too.
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

// wordInside expands a word inside of ${…} where it is not split.
func (w *walker) wordInside(wd *syntax.Word, s *state) value {
	if wd == nil {
		return value{}
	}
	b := &builder{}
	w.wordInPlace(wd, b, s, true)
	b.cut()
	switch len(b.fields) {
	case 0:
		return value{}
	case 1:
		return b.fields[0].value()
	}
	return unknown()
}

// wordInPlace expands a word inside of ${…} into the word around it.
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

// expansionParts follows what is inside of ${…}: commands there run too.
func (w *walker) expansionParts(p *syntax.ParamExp, s *state) {
	if p.Exp != nil {
		branch := w.fork(s)
		w.wordInside(p.Exp.Word, branch)
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			w.setVar(p.Param.Value, unknown(), branch, false)
		}
		w.join(s, branch)
		if p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull {
			w.mayStop(s)
		}
	}
	if p.Repl != nil {
		w.wordInside(p.Repl.Orig, s)
		w.wordInside(p.Repl.With, s)
	}
	if p.Slice == nil {
		return
	}
	if length, ok := p.Slice.Length.(*syntax.Word); p.Slice.Length != nil && (!ok || !isInteger(length.Lit())) {
		w.mayStop(s) // it may be too small
	}
	for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
		if x != nil {
			w.arithmetic(x, s)
		}
	}
}

// mayStop records that an expansion may fail here: bash then goes on with the next
// line, or ends.
func (w *walker) mayStop(s *state) { w.exits = append(w.exits, w.fork(s)) }

// positional expands $@ and $*.
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
					b.unknown(true) // with none of it there is no blank
				}
				b.literal(" ", true)
			} else if i > 0 && !a.many && !words[i-1].many {
				b.cut() // one that may be none may let its neighbours be one word
			}
			w.knownWord(a, b, s, quoted, separate)
		}
	}
}

// argument expands $1.
func (w *walker) argument(name string, b *builder, s *state, quoted bool) {
	n := atoi(name)
	if !s.params.known || n == 0 {
		b.unknown(quoted)
		return
	}
	if n > len(s.params.words) && s.params.count() >= 0 {
		if quoted {
			b.literal("", true)
		}
		return
	}
	for _, a := range s.params.words[:min(n, len(s.params.words))] {
		if a.many || a.glob {
			b.unknown(quoted) // the arguments before it may be any number
			return
		}
	}
	if n > len(s.params.words) {
		b.unknown(quoted)
		return
	}
	w.steps -= len(s.params.words[n-1].text) / 64
	w.knownWord(s.params.words[n-1], b, s, quoted, false)
}

// knownWord adds a positional parameter, of which "$@" keeps the number of words.
func (w *walker) knownWord(a word, b *builder, s *state, quoted, separate bool) {
	b.value(a.value(), quoted, s)
	if a.many {
		b.unknown(quoted && !separate)
	} else if a.glob {
		b.cur.many = b.cur.many || separate
	}
}

// count is how many positional parameters there are, -1 if that is not known.
func (p params) count() int {
	if !p.known {
		return -1
	}
	for _, a := range p.words {
		if a.many || a.glob {
			return -1
		}
	}
	return len(p.words)
}

// shift drops some positional parameters, if it is plain which these are.
func (p params) shift(n int) params {
	count := p.count()
	switch {
	case n < 0 || !p.known:
		return params{}
	case count >= 0 && n > count:
		return p // it fails and drops none
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

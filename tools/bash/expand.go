package bash

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ansiC decodes the text of $'…'. ok is false for escapes it does not know, and
// for those whose result bash and we might disagree on.
func ansiC(s string) (text string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		if j := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); j >= 0 {
			out.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[j])
			continue
		}
		n, size := escapeNumber(s[i:])
		if size == 0 || n == 0 || n > 0x7e {
			return "", false
		}
		out.WriteByte(byte(n))
		i += size - 1
	}
	return out.String(), true
}

// escapeNumber reads \xHH, \NNN, \uHHHH or \UHHHHHHHH without the backslash.
func escapeNumber(s string) (n, size int) {
	base, most, start := 8, 3, 0
	switch s[0] {
	case 'x':
		base, most, start = 16, 2, 1
	case 'u':
		base, most, start = 16, 4, 1
	case 'U':
		base, most, start = 16, 8, 1
	}
	for size = start; size < len(s) && size-start < most; size++ {
		d := strings.IndexByte("0123456789abcdef", s[size]|0x20)
		if s[size] <= '9' {
			d = int(s[size]) - '0'
		}
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
	}
	if size == start {
		return 0, 0
	}
	return n, size
}

// param expands $name and ${…}.
func (w *walker) param(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	if why := w.oddExpansion(p); why != "" {
		w.opaque(why, w.text(p))
		b.unknown(quoted)
		return
	}
	name := p.Param.Value
	if !plainExpansion(p) {
		w.expansionParts(p, s)
		b.unknown(quoted || p.Length)
		return
	}
	switch {
	case name == "@" || name == "*":
		w.positional(name == "@", b, s, quoted)
	case isNumber(name):
		w.argument(name, b, s, quoted)
	case len(name) == 1 && strings.Contains("?#$!", name) || numericNames[name]:
		b.number()
	case name == "-":
		b.unknown(true)
	case name == "PWD" && len(s.dirs) == 1:
		b.literal(s.dirs[0], true)
	case shellNames[name]:
		b.unknown(quoted)
	default:
		w.variable(s.vars[name], b, quoted)
	}
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
func (w *walker) oddExpansion(p *syntax.ParamExp) string {
	switch {
	case p.Param == nil || p.NestedParam != nil || p.Flags != nil || p.Excl || p.Names != 0 || p.Width || p.IsSet || len(p.Modifiers) > 0:
		return "the name of a variable is computed"
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps:
		return "the value of a variable is evaluated"
	case !p.Short && strings.ContainsAny(w.text(p), "'\"<>\\`"):
		return "quotes and redirections inside ${…} are read differently by bash"
	}
	if p.Index != nil {
		if word, ok := p.Index.(*syntax.Word); !ok || !plainIndex(word.Lit()) {
			return "an array's index is evaluated"
		}
	}
	return ""
}

// plainIndex reports whether an index is a number, or all elements.
func plainIndex(s string) bool { return isInteger(s) || s == "@" || s == "*" }

// plainExpansion reports whether only the value itself is asked for.
func plainExpansion(p *syntax.ParamExp) bool {
	return !p.Length && p.Index == nil && p.Slice == nil && p.Repl == nil && p.Exp == nil
}

// expansionParts walks what is inside ${…}: commands there run too.
func (w *walker) expansionParts(p *syntax.ParamExp, s *state) {
	if p.Exp != nil {
		w.word(p.Exp.Word, s)
		switch p.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull:
			w.setVar(p.Param.Value, value{dynamic: true}, s, false)
		}
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig, s)
		w.word(p.Repl.With, s)
	}
	if p.Slice != nil {
		w.slices(p.Slice.Length)
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				w.arithmetic(x, s)
			}
		}
	}
}

// positional expands $@ and $*.
func (w *walker) positional(separate bool, b *builder, s *state, quoted bool) {
	switch {
	case !s.exact:
		b.unknown(quoted && !separate)
		b.cur.split = true
	case len(s.args) == 0:
		if quoted && !separate {
			b.literal("", true) // "$*" is one word, "$@" is none
		}
	case len(s.args) == 1:
		w.knownWord(s.args[0], b, quoted)
	default:
		b.unknown(false)
	}
}

// argument expands $1.
func (w *walker) argument(name string, b *builder, s *state, quoted bool) {
	n, err := strconv.Atoi(name)
	switch {
	case err != nil || n == 0 || !s.exact:
		b.unknown(quoted)
	case n <= len(s.args):
		for _, a := range s.args[:n] {
			if a.split || a.glob {
				b.unknown(quoted) // the arguments before it may be any number
				return
			}
		}
		w.knownWord(s.args[n-1], b, quoted)
	case quoted:
		b.literal("", true)
	}
}

// knownWord adds a word as the value of a variable.
func (w *walker) knownWord(a word, b *builder, quoted bool) {
	w.variable(value{text: a.text, dynamic: a.dynamic, glob: a.glob}, b, quoted)
	b.cur.split = b.cur.split || a.split
}

// variable adds a variable's value. Unquoted, it is split, and can be a pattern.
func (w *walker) variable(v value, b *builder, quoted bool) {
	w.steps -= len(v.text) / 64 // long values, used often, cost time
	switch {
	case w.steps <= 0 || len(v.text)+b.raw.Len() > maxScript:
		b.unknown(false)
	case v.number:
		b.number()
	case v.glob:
		// One of the names it matches, whichever; they have its beginning.
		if prefix := literalPrefix(v.text); quoted && prefix == v.text {
			b.literal(prefix, true)
		} else if b.raw.Len() == 0 && !b.cur.dynamic {
			b.literal(v.text, false)
			b.cur.split = !quoted
		} else {
			b.unknown(quoted)
		}
	case v.dynamic:
		if quoted {
			b.literal(v.text, true)
		}
		b.unknown(quoted)
	case quoted:
		b.literal(v.text, true)
	default:
		for i, field := range splitFields(v.text) {
			if i > maxWords {
				break // more is too much in any case
			}
			if i > 0 {
				b.cut()
			}
			b.literal(field, false)
		}
	}
}

// splitFields splits at blanks. An empty field at an end says that the value
// begins or ends with blanks.
func splitFields(s string) []string {
	if !strings.ContainsAny(s, " \t\n") {
		return []string{s}
	}
	fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n", r) })
	if strings.ContainsRune(" \t\n", rune(s[0])) {
		fields = append([]string{""}, fields...)
	}
	if strings.ContainsRune(" \t\n", rune(s[len(s)-1])) {
		fields = append(fields, "")
	}
	return fields
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

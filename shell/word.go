package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

// word is one word after all expansions except patterns; any number of words if many is set.
type word struct {
	value
	many   bool   // any number of words, or none; implies dynamic or glob. Each text of either is split at blanks then
	sample string // the word with the names that mktemp makes, if only those are unknown
}

func plainWord(text string) word { return word{value: value{text: text}} }

func anyWords() word { return word{value: unknown(), many: true} }

func wordOf(a policy.Word) word {
	return word{value: value{text: a.Text, dynamic: a.Dynamic}, many: a.Many}
}

func (wd word) is(text string) bool { return wd.known() && wd.text == text }

func (wd word) several() bool { return wd.many || wd.glob }

func (wd word) prefix() string {
	if wd.glob {
		return texts.LiteralPrefix(wd.text)
	}
	return wd.text
}

func (wd word) beginsWith(chars string) bool {
	return wd.text != "" && strings.IndexByte(chars, wd.text[0]) >= 0
}

// maybe reports whether the word, or one of several, may be text.
func (wd word) maybe(text string) bool {
	switch {
	case wd.surelyNumber():
		return texts.IsNumber(text)
	case wd.glob:
		return strings.HasPrefix(text, texts.LiteralPrefix(wd.text))
	case wd.dynamic:
		return wd.many || strings.HasPrefix(text, wd.text)
	}
	return wd.text == text
}

// words expands the words of a command. If there are too many, it scans the rest and returns maxWords.
func (w *walker) words(list []*syntax.Word, s *state) []word {
	out := make([]word, 0, len(list))
	for i, wd := range list {
		if text, ok := plainText(wd); ok {
			out = append(out, plainWord(text))
		} else {
			out = append(out, w.word(wd, s)...)
		}
		if len(out) > maxWords {
			w.opaque("a command has too many words", "")
			from, to := int(list[i].Pos().Offset()), int(list[len(list)-1].End().Offset())
			if from < to && to <= len(w.source) {
				w.scan(w.source[from:to])
			}
			return out[:maxWords]
		}
	}
	return out
}

// single expands a word where bash allows exactly one.
func (w *walker) single(wd *syntax.Word, s *state) word {
	out := w.word(wd, s)
	switch {
	case len(out) == 1 && !out[0].glob:
		return out[0]
	case len(out) > 1:
		return word{value: unknown()}
	case len(out) == 0:
		return word{value: value{dynamic: true, glob: true}}
	case w.globInProc(out[0].text, s):
		w.opaque("a pattern may match any file below /proc", w.text(wd))
	}
	return word{value: value{text: out[0].text, dynamic: true, glob: true}} // one existing file, or an error
}

func (w *walker) word(wd *syntax.Word, s *state) []word {
	if wd == nil {
		return nil
	}
	if text, ok := plainText(wd); ok {
		return []word{plainWord(text)}
	}
	if !hasBraces(wd) {
		return w.parts(wd.Parts, s)
	}
	if m := sequence().FindStringSubmatch(wd.Lit()); m != nil && (len(m[1]) > 2 || len(m[2]) > 2) {
		return []word{{value: someNumber(), many: true}}
	}
	alternatives, why := w.braces(wd)
	if why != "" {
		w.opaque(why, w.text(wd))
		for _, p := range wd.Parts { // commands in it run anyway
			w.part(p, &builder{}, s, false)
		}
		return []word{anyWords()}
	}
	var out []word
	for _, parts := range alternatives {
		out = append(out, w.parts(parts, s)...)
	}
	return out
}

// sequence matches a brace sequence of natural numbers. A long one is not expanded.
var sequence = lazyregexp.New(`^\{(0|[1-9]\d{0,8})\.\.(0|[1-9]\d{0,8})\}$`)

// plainText returns the text of a word that no expansion changes.
func plainText(wd *syntax.Word) (text string, ok bool) {
	if wd == nil || len(wd.Parts) != 1 {
		return "", false
	}
	text = literalOf(wd.Parts[0])
	return text, text != "" && !strings.ContainsAny(text, "~\\*?[]{}")
}

func literalOf(p syntax.WordPart) string {
	if lit, ok := p.(*syntax.Lit); ok {
		return lit.Value
	}
	return ""
}

func hasBraces(wd *syntax.Word) bool {
	if wd == nil {
		return false
	}
	return slices.ContainsFunc(wd.Parts, func(p syntax.WordPart) bool { return strings.Contains(literalOf(p), "{") })
}

func (w *walker) parts(parts []syntax.WordPart, s *state) []word {
	b := &builder{}
	for i, p := range parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case ok && i == 0 && strings.HasPrefix(lit.Value, "~"):
			w.tilde(lit.Value, len(parts) == 1, b, s)
		case ok && i == 0 && w.assignmentTilde(lit.Value, len(parts) == 1, b, s):
		default:
			w.part(p, b, s, false)
		}
	}
	b.cut()
	w.keep(strings.Map(func(r rune) rune {
		if strings.ContainsRune(w.separators, r) {
			return ' '
		}
		return r
	}, b.lost.String()))
	for i := range b.fields {
		f := &b.fields[i]
		f.many = f.many || f.glob && s.noglobs
		if deep := f.glob && strings.Contains(f.text, "**"); deep && s.globstar {
			b.fields = append(b.fields, word{value: value{text: f.prefix(), dynamic: true}, many: true}) // and what * matches
		}
	}
	return b.fields
}

// assignmentTilde expands name=~ in words that look like assignments: dd if=~/x.
func (w *walker) assignmentTilde(text string, alone bool, b *builder, s *state) bool {
	name, rest, ok := strings.Cut(text, "=")
	tilde := strings.HasPrefix(rest, "~") || strings.Contains(rest, ":~")
	if !ok || !syntax.ValidName(name) || !tilde {
		return false
	}
	if strings.Contains(rest, ":") {
		w.opaque("~ is expanded in the middle of a word", text)
		b.unknown(true)
		return true
	}
	b.literal(name+"=", true)
	w.tilde(rest, alone, b, s)
	return true
}

// tilde expands only ~ and ~/.
func (w *walker) tilde(text string, alone bool, b *builder, s *state) {
	rest, slash := strings.CutPrefix(text[1:], "/")
	home := s.get("HOME")
	plain := slash || text == "~" && alone
	if !plain || home.dynamic || home.text == "" {
		w.opaque("it names a home directory that is not known here", text)
		b.unknown(true)
		return
	}
	b.literal(home.text, true)
	if slash {
		b.literal("/", true)
		w.lit(rest, b, false)
	}
}

func (w *walker) part(p syntax.WordPart, b *builder, s *state, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		w.lit(p.Value, b, quoted)
	case *syntax.SglQuoted:
		w.singleQuoted(p, b)
	case *syntax.DblQuoted:
		w.doubleQuoted(p, b, s)
	case *syntax.CmdSubst:
		w.substitution(p, b, s, quoted)
	case *syntax.ProcSubst:
		w.processSubstitution(p, b, s)
	case *syntax.ParamExp:
		w.param(p, b, s, quoted)
	case *syntax.ArithmExp:
		w.arithmetic(p.X, s)
		b.value(numberOf(p.X), quoted, s)
	case *syntax.ExtGlob:
		if strings.ContainsAny(p.Pattern.Value, "$`<>\\'\"") {
			w.opaque("an extended pattern is expanded by bash alone", w.text(p))
		}
		b.unknown(false)
	default:
		w.opaque("this form of word is not followed", w.text(p))
		b.unknown(false)
	}
}

func (w *walker) singleQuoted(p *syntax.SglQuoted, b *builder) {
	text, ok := p.Value, true
	if p.Dollar {
		text, ok = texts.ANSIC(p.Value)
	}
	if !ok {
		w.opaque("a text in $'…' is not followed", w.text(p))
		b.unknown(true)
		return
	}
	b.literal(text, true)
}

func (w *walker) doubleQuoted(p *syntax.DblQuoted, b *builder, s *state) {
	if p.Dollar {
		w.opaque("a text in $\"…\" is translated", w.text(p))
	}
	if len(p.Parts) == 0 {
		b.literal("", true)
	}
	for _, inner := range p.Parts {
		w.part(inner, b, s, true)
	}
}

// knownOutput returns what is known of the output of a command substitution, and whether it is several numbers.
func (w *walker) knownOutput(p *syntax.CmdSubst, s *state) (v value, numbers bool) {
	text := strings.Trim(w.text(p), "$()` ")
	if len(p.Stmts) != 1 {
		return unknown(), false
	}
	last := p.Stmts[0]
	for b, ok := last.Cmd.(*syntax.BinaryCmd); ok && b.Op == syntax.Pipe; b, ok = last.Cmd.(*syntax.BinaryCmd) {
		last = b.Y
	}
	name, _, _ := strings.Cut(w.text(last), " ")
	_, redefined := s.funcs.Get(name)
	dir, path := s.get("TMPDIR"), s.get("PATH")
	inTmp := dir.known() && strings.TrimPrefix(dir.text, "/tmp") == ""
	out := texts.Outputs(text, w.text(last), len(s.funcs.All()) == 0)
	w.keep(out.Program)
	_, other := s.funcs.Get(out.Program)
	switch {
	case slices.Contains([]bool{redefined, other, w.renames}, true):
	case text == "pwd":
		return w.parameter("PWD", s), false
	case out.Count && path.known():
		return value{dynamic: true, number: true, orEmpty: !listed("nproc getconf", name)}, false
	case inTmp && out.Temporary:
		return value{text: texts.FreshDir, dynamic: true, fresh: true}, false
	case out.Program != "" && path.known():
		return w.lookup(out.Program, path.text), false
	}
	return unknown(), out.Numbers && path.known()
}

// lookup returns the path of a program in the system directories.
func (w *walker) lookup(program, path string) value {
	for _, dir := range filepath.SplitList(path) {
		file := dir + "/" + program
		if _, system := programs.System(file); !system {
			break
		} else if w.exists(file) {
			return value{text: file}
		}
	}
	return unknown()
}

func (w *walker) substitution(p *syntax.CmdSubst, b *builder, s *state, quoted bool) {
	if p.TempFile || p.ReplyVar {
		w.opaque("this substitution runs in the shell itself", w.text(p))
	}
	text := w.text(p)
	ambiguous := strings.Count(text, "`") > 2 || strings.Contains(text, "<<") || strings.Contains(text, `\`)
	ambiguous = ambiguous || quoted && strings.Contains(text, `"`)
	if p.Backquotes && ambiguous {
		w.opaque("quotes and here-documents inside backquotes are read differently by bash", text)
	}
	w.checkHereDocument(text, p.Stmts)
	output := w.outputOf(func() { w.apart(s, func(sub *state) { w.stmts(p.Stmts, sub) }) })
	w.keep(output)
	w.output += output
	v, numbers := w.knownOutput(p, s)
	begins := !b.present
	if b.value(v, quoted, s); numbers && !quoted && !s.split {
		b.cur.number = begins
	}
}

func (w *walker) processSubstitution(p *syntax.ProcSubst, b *builder, s *state) {
	w.checkHereDocument(w.text(p), p.Stmts)
	w.feed(w.outputOf(func() { w.alongside(s, func(sub *state) { w.stmts(p.Stmts, sub) }) }), false, s)
	if len(p.Stmts) == 0 {
		b.unknown(false) // not expanded by bash
		return
	}
	b.literal(procSubst, true)
}

// checkHereDocument refuses a here-document in a substitution that is not one simple command. Bash 5.2 prints and
// reparses those: "cat <<E; p; q" becomes "p q".
func (w *walker) checkHereDocument(text string, stmts []*syntax.Stmt) {
	simple := len(stmts) == 1 && !stmts[0].Background && !stmts[0].Negated
	if simple {
		_, simple = stmts[0].Cmd.(*syntax.CallExpr)
	}
	if strings.Contains(text, "<<") && !simple {
		w.opaque("bash loses a semicolon after a here-document in a substitution", text)
	}
}

// procSubst is the path that stands for a process substitution.
const procSubst = "/dev/fd/63"

func policyWords(words []word) []policy.Word {
	return appendWords(make([]policy.Word, 0, len(words)), words)
}

func appendWords(out []policy.Word, words []word) []policy.Word {
	for _, wd := range words {
		pw := policy.Word{Text: wd.text, Dynamic: wd.dynamic || wd.glob, Many: wd.many, Number: wd.surelyNumber(), Fresh: wd.fresh}
		if wd.glob {
			pw.Text = wd.prefix()
			// The prefix decides whether a match may be a flag.
			pw.Many = wd.many || pw.Text == "" || pw.Text[0] == '-'
			if !wd.dynamic {
				pw.Pattern(wd.text)
			}
		}
		out = append(out, pw)
	}
	return out
}

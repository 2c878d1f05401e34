package shell

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Braces follow bash's braces.c, not mvdan.cc/sh: a } ends a group only after a comma or a sequence such as 1..5.

// unit is one byte of a literal, or a part that brace expansion copies unchanged.
type unit struct {
	char byte // 0 if part is set
	part syntax.WordPart
}

func (w *walker) braces(wd *syntax.Word) (alternatives [][]syntax.WordPart, why string) {
	units, why := w.units(wd)
	if why != "" {
		return nil, why
	}
	e := braceExpander{left: maxBraces, room: 1 << 14}
	lists := e.expand(units)
	if e.why != "" {
		return nil, e.why
	}
	size := 0
	for _, list := range lists {
		size += len(list)
		parts := join(list)
		if len(lists) > 1 && newName(parts) {
			return nil, "bash expands braces before the variable: write ${NAME}"
		}
		if len(lists) > 1 && len(parts) > 0 && strings.Contains(literalOf(parts[0]), "=~") {
			return nil, "braces make an assignment with ~: write $HOME"
		}
		alternatives = append(alternatives, parts)
	}
	w.steps -= size / 64
	return alternatives, ""
}

func (w *walker) units(wd *syntax.Word) (out []unit, why string) {
	for _, p := range wd.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			if w.oddInBraces(p) {
				return nil, "bash expands braces inside of this part, too: write the words out"
			}
			out = append(out, unit{part: p})
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c != '\\' || i+1 == len(lit.Value) {
				out = append(out, unit{char: c})
				continue
			}
			_, size := utf8.DecodeRuneInString(lit.Value[i+1:])
			out = append(out, unit{part: &syntax.Lit{Value: lit.Value[i : i+1+size]}})
			i += size
		}
	}
	return out, ""
}

func (w *walker) oddInBraces(p syntax.WordPart) (odd bool) {
	switch p := p.(type) {
	case *syntax.ExtGlob:
		return true
	case *syntax.ArithmExp:
		return p.Bracket
	case *syntax.SglQuoted:
		return p.Dollar && strings.Contains(p.Value, `\'`)
	case *syntax.ParamExp, *syntax.DblQuoted:
		syntax.Walk(p, func(n syntax.Node) bool {
			if pe, ok := n.(*syntax.ParamExp); ok && !pe.Short {
				text := w.text(pe)
				odd = odd || len(text) < 3 || strings.ContainsAny(text[2:len(text)-1], "{}'\"\\`")
			}
			return !odd
		})
	}
	return odd
}

func join(list []unit) (parts []syntax.WordPart) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, &syntax.Lit{Value: text.String()})
			text.Reset()
		}
	}
	for _, u := range list {
		if lit, ok := u.part.(*syntax.Lit); ok {
			text.WriteString(lit.Value) // an escaped character
		} else if u.part != nil {
			flush()
			parts = append(parts, u.part)
		} else {
			text.WriteByte(u.char)
		}
	}
	flush()
	return parts
}

// newName reports whether brace expansion changes which variable a $ names: bash expands $a{b,c} to $ab $ac.
func newName(parts []syntax.WordPart) bool {
	for i, p := range parts {
		last := i+1 == len(parts)
		text := literalOf(p)
		if n := strings.IndexByte(unescape(text, false), '$'); n >= 0 && (n+1 < len(text) || !last) {
			return true
		}
		pe, ok := p.(*syntax.ParamExp)
		if !ok || !pe.Short || last {
			continue
		}
		next := literalOf(parts[i+1]) + "."
		named := pe.Param != nil && syntax.ValidName(pe.Param.Value)
		if next[0] == '[' || named && syntax.ValidName("_"+next[:1]) {
			return true
		}
	}
	return false
}

type braceExpander struct {
	left int // limit of alternatives
	room int // units that all results may still have
	why  string
}

func (e *braceExpander) expand(text []unit) [][]unit {
	open := 0
	for {
		open = gobble(text, open, '{')
		if open == len(text) {
			return [][]unit{text}
		}
		if gobble(text, open+1, '}') < len(text) {
			break
		}
		open++
	}
	end := gobble(text, open+1, '}')
	amble := text[open+1 : end]
	var choices [][]unit
	if !slices.Contains(amble, unit{char: ','}) { // bash ignores quotes and inner braces here
		switch choices = e.sequence(amble); {
		case choices == nil && end+1 == len(text):
			return [][]unit{text}
		case choices == nil:
			choices = [][]unit{text[open : end+1]}
		}
	} else {
		choices = e.amble(amble)
	}
	out := e.product([][]unit{text[:open]}, choices)
	if end+1 < len(text) && e.why == "" {
		out = e.product(out, e.expand(text[end+1:]))
	}
	return out
}

func (e *braceExpander) amble(text []unit) (out [][]unit) {
	for start := 0; e.why == ""; {
		end := gobble(text, start, ',')
		out = append(out, e.expand(text[start:end])...)
		if len(out) > e.left {
			e.why = "braces expand to too many words: write fewer alternatives"
		}
		if end == len(text) {
			return out
		}
		start = end + 1
	}
	return out
}

func (e *braceExpander) product(a, b [][]unit) [][]unit {
	if len(a) == 1 && len(b) == 1 && len(a[0]) == 0 {
		return b
	}
	for _, x := range a {
		e.room -= len(x) * len(b)
	}
	for _, y := range b {
		e.room -= len(y) * len(a)
	}
	if len(a)*len(b) > e.left || e.room < 0 && len(a)*len(b) > 1 {
		e.why = "braces expand to too many words: write fewer alternatives"
		return nil
	}
	out := make([][]unit, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, append(x[:len(x):len(x)], y...))
		}
	}
	return out
}

// gobble is bash's brace_gobbler. It returns the position of the next effective brace or comma, or len(text).
func gobble(text []unit, i int, satisfy byte) int {
	level, commas := 0, 1
	if satisfy == '}' {
		commas = 0
	}
	for ; i < len(text); i++ {
		c := text[i].char
		if c == satisfy && level == 0 && commas > 0 {
			if i > 0 || !opensNothing(text) {
				return i
			}
			continue
		}
		switch {
		case c == '{':
			level++
		case c == '}' && level > 0:
			level--
		case satisfy == '}' && level == 0 && separates(text[i:]):
			commas++
		}
	}
	return len(text)
}

func opensNothing(text []unit) bool {
	return text[0].char == '{' && (len(text) == 1 || text[1].char == '}')
}

// separates reports whether a text begins with a comma, or with .. not followed by }.
func separates(text []unit) bool {
	if text[0].char != '.' || len(text) == 1 || text[1].char != '.' {
		return text[0].char == ','
	}
	return len(text) == 2 || text[2].char != '}'
}

// sequence expands {1..5}, {a..e} and {1..9..2}. It returns nil if bash leaves the braces unchanged.
func (e *braceExpander) sequence(amble []unit) [][]unit {
	characters := make([]byte, len(amble)) // NUL for a part
	for i, u := range amble {
		characters[i] = u.char
	}
	raw := string(characters)
	first, last, ok := strings.Cut(raw, "..")
	if !ok || first == "" || last == "" {
		if strings.Contains(raw, "\x00") {
			e.why = "quotes or a variable between braces are not followed: quote the braces, too, or write the words out"
		}
		return nil
	}
	last, step, stepped := strings.Cut(last, "..")
	from, to, by, text := 0, 0, 1, strconv.Itoa
	switch {
	case plainNumber.MatchString(first) && plainNumber.MatchString(last):
		from, to = atoi(first), atoi(last)
	case letters.MatchString(first + ".." + last):
		from, to, text = int(first[0]), int(last[0]), func(n int) string { return string(rune(n)) }
	case stepped, oddEnd.MatchString(first) && oddEnd.MatchString(last):
		by = 0
	default:
		return nil
	}
	if stepped && by > 0 {
		by, _ = strconv.Atoi(plainNumber.FindString(step))
	}
	if by <= 0 {
		e.why = "this sequence in braces is not followed: write the words out"
		return nil
	}
	return e.count(from, to, by, text)
}

func (e *braceExpander) count(from, to, by int, text func(int) string) (out [][]unit) {
	if from > to {
		by = -by
	}
	if (to-from)/by >= e.left {
		e.why = "braces expand to too many words: write fewer alternatives"
		return nil
	}
	for n := from; (to-n)*by >= 0; n += by {
		var units []unit
		for _, c := range []byte(text(n)) {
			units = append(units, unit{char: c})
		}
		out = append(out, units)
	}
	return out
}

var (
	plainNumber = regexp.MustCompile(`^(?:0|-?[1-9]\d{0,8})$`)
	letters     = regexp.MustCompile(`^(?:[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])$`)
)

// oddEnd matches ends of sequences that bash may expand but sequence does not, such as 01 or %.
var oddEnd = regexp.MustCompile(`^(?s:[\x01-\x7f]\d*|\d.*)$`)

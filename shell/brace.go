package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Braces are expanded by bash's own rules (braces.c), not by the parser's: a group
// does not end at a } before which there was no comma, for example.

// unit is one character of a word outside of quotes, or a part that braces are not
// looked for in: quotes, expansions, an escaped character.
type unit struct {
	char byte // 0 = part
	part syntax.WordPart
}

// braces returns what the braces of a word expand to, or why that is not known.
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
		if len(lists) > 1 && newName(parts, wd) {
			return nil, "braces are expanded before the variable in them has a name"
		}
		if lit, ok := first(parts).(*syntax.Lit); ok && len(lists) > 1 && strings.Contains(lit.Value, "=~") {
			return nil, "braces hide an assignment, in which ~ would be expanded"
		}
		alternatives = append(alternatives, parts)
	}
	w.steps -= size / 64
	return alternatives, ""
}

// units takes a word apart.
func (w *walker) units(wd *syntax.Word) (out []unit, why string) {
	for _, p := range wd.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			if why := w.oddInBraces(p); why != "" {
				return nil, why
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

// oddInBraces says why bash may look for braces inside of a part of a word.
func (w *walker) oddInBraces(p syntax.WordPart) string {
	const odd = "bash looks for braces in this part of a word, too"
	switch p := p.(type) {
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\'`) {
			return odd
		}
	case *syntax.ExtGlob:
		return odd
	case *syntax.ArithmExp:
		if p.Bracket {
			return odd
		}
	case *syntax.ParamExp:
		text := w.text(p)
		if !p.Short && (len(text) < 3 || strings.ContainsAny(text[2:len(text)-1], "{}'\"\\`")) {
			return odd
		}
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			if pe, ok := inner.(*syntax.ParamExp); ok && !pe.Short && strings.ContainsAny(w.text(pe)[2:], "{'\"\\`") {
				return odd
			}
		}
	}
	return ""
}

// join makes parts of units.
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

// first is the first part of a word, or nil.
func first(parts []syntax.WordPart) syntax.WordPart {
	if len(parts) == 0 {
		return nil
	}
	return parts[0]
}

// newName reports whether braces have put something after a $ or a $name that makes
// another expansion of it.
func newName(parts []syntax.WordPart, wd *syntax.Word) bool {
	for i, p := range parts {
		last := i+1 == len(parts)
		if lit, ok := p.(*syntax.Lit); ok {
			n := strings.IndexByte(unescape(lit.Value, false), '$')
			if n >= 0 && (n+1 < len(lit.Value) || !last) {
				return true
			}
		}
		pe, ok := p.(*syntax.ParamExp)
		if !ok || !pe.Short || last {
			continue
		}
		next, ok := parts[i+1].(*syntax.Lit)
		named := pe.Param != nil && syntax.ValidName(pe.Param.Value)
		if ok && (next.Value[0] == '[' || named && nameByte(next.Value[0])) {
			return true
		}
	}
	return false
}

func nameByte(c byte) bool { return c == '_' || isAlnum(c) }

// braceExpander expands braces until there are too many alternatives.
type braceExpander struct {
	left int // alternatives
	room int // units of all that is put together
	why  string
}

// expand is bash's brace_expand.
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
	if !hasComma(amble) {
		choices = e.sequence(amble)
		if choices == nil && end+1 == len(text) {
			return [][]unit{text}
		}
		if choices == nil {
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

// amble expands the alternatives between commas.
func (e *braceExpander) amble(text []unit) (out [][]unit) {
	for start := 0; e.why == ""; {
		end := gobble(text, start, ',')
		out = append(out, e.expand(text[start:end])...)
		if len(out) > e.left {
			e.why = "braces expand to too much"
		}
		if end == len(text) {
			return out
		}
		start = end + 1
	}
	return out
}

// product appends each of some texts to each of others.
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
		e.why = "braces expand to too much"
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

// gobble is bash's brace_gobbler: it returns where a brace or comma is that counts,
// from a position on, or the length of the text.
func gobble(text []unit, i int, satisfy byte) int {
	level, commas := 0, 1
	if satisfy == '}' {
		commas = 0
	}
	for ; i < len(text); i++ {
		c := text[i].char
		if c == satisfy && level == 0 && commas > 0 {
			// {} alone, and { alone, are words.
			last := i+1 == len(text) || text[i+1].char == '}'
			if c != '{' || i > 0 || !last {
				return i
			}
			continue
		}
		switch {
		case c == '{':
			level++
		case c == '}' && level > 0:
			level--
		case satisfy == '}' && c == ',' && level == 0:
			commas++
		case satisfy == '}' && c == '.' && level == 0 && i+1 < len(text) && text[i+1].char == '.':
			if i+2 == len(text) || text[i+2].char != '}' {
				commas++
			}
		}
	}
	return len(text)
}

// hasComma reports whether the text between braces is a list. Bash does not look at
// quotes there, nor at inner braces.
func hasComma(amble []unit) bool {
	for _, u := range amble {
		if u.char == ',' {
			return true
		}
	}
	return false
}

// sequence expands {1..5}, {a..e} and {1..9..2}. It returns nil for what bash leaves
// as it is. Forms that are rare are not followed.
func (e *braceExpander) sequence(amble []unit) [][]unit {
	var raw strings.Builder
	for _, u := range amble {
		if u.char == 0 {
			raw.WriteString("\x00\x00") // longer than one character
			continue
		}
		raw.WriteByte(u.char)
	}
	first, rest, ok := strings.Cut(raw.String(), "..")
	if !ok || first == "" || rest == "" {
		if strings.Contains(raw.String(), "\x00") {
			e.why = "quotes between braces are not followed"
		}
		return nil
	}
	last, step, stepped := strings.Cut(rest, "..")
	by := 1
	if stepped {
		n, err := strconv.Atoi(step)
		if err != nil || strconv.Itoa(n) != step || n <= 0 {
			e.why = "this sequence in braces is not followed"
			return nil
		}
		by = n
	}
	if from, to, ok := plainRange(first, last); ok {
		return e.count(from, to, by, strconv.Itoa)
	}
	if sameCase(first, last) {
		return e.count(int(first[0]), int(last[0]), by, func(n int) string { return string(rune(n)) })
	}
	if mayBeSequence(first) && mayBeSequence(last) {
		e.why = "this sequence in braces is not followed"
	}
	return nil
}

// count lists the numbers of a sequence.
func (e *braceExpander) count(from, to, by int, text func(int) string) (out [][]unit) {
	if from > to {
		by = -by
	}
	if (to-from)/by >= e.left {
		e.why = "braces expand to too much"
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

// plainRange reads both ends of a sequence of numbers in their usual form.
func plainRange(first, last string) (from, to int, ok bool) {
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	plain := err1 == nil && err2 == nil && strconv.Itoa(from) == first && strconv.Itoa(to) == last
	small := max(from, to, -from, -to) < 1<<30
	return from, to, plain && small
}

// sameCase reports whether both are letters between which there are only letters.
func sameCase(a, b string) bool {
	if len(a) != 1 || len(b) != 1 {
		return false
	}
	in := func(s string, from, to byte) bool { return s[0] >= from && s[0] <= to }
	return in(a, 'a', 'z') && in(b, 'a', 'z') || in(a, 'A', 'Z') && in(b, 'A', 'Z')
}

// mayBeSequence reports whether bash may take a text for the end of a sequence.
func mayBeSequence(s string) bool {
	if s == "" || s[0] == 0 {
		return false
	}
	return len(s) == 1 || isNumber(s[1:]) || isNumber(s[:1])
}

package texts

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
)

// A Unit is one byte of a literal, or a part that brace expansion copies unchanged.
type Unit struct {
	Char byte // 0 if Part is set
	Part syntax.WordPart
}

// ExpandBraces returns the at most most words that bash's brace expansion makes of one. It follows bash's braces.c, not
// mvdan.cc/sh: a } ends a group only after a comma or a sequence such as 1..5. why says what it does not follow.
func ExpandBraces(text []Unit, most int) (words [][]Unit, why string) {
	e := braceExpander{left: most, room: 1 << 14}
	words = e.expand(text)
	return words, e.why
}

type braceExpander struct {
	left int // limit of alternatives
	room int // units that all results may still have
	why  string
}

func (e *braceExpander) expand(text []Unit) [][]Unit {
	open := 0
	for {
		open = gobble(text, open, '{')
		if open == len(text) {
			return [][]Unit{text}
		}
		if gobble(text, open+1, '}') < len(text) {
			break
		}
		open++
	}
	end := gobble(text, open+1, '}')
	amble := text[open+1 : end]
	var choices [][]Unit
	if !slices.Contains(amble, Unit{Char: ','}) { // bash ignores quotes and inner braces here
		switch choices = e.sequence(amble); {
		case choices == nil && end+1 == len(text):
			return [][]Unit{text}
		case choices == nil:
			choices = [][]Unit{text[open : end+1]}
		}
	} else {
		choices = e.amble(amble)
	}
	out := e.product([][]Unit{text[:open]}, choices)
	if end+1 < len(text) && e.why == "" {
		out = e.product(out, e.expand(text[end+1:]))
	}
	return out
}

func (e *braceExpander) amble(text []Unit) (out [][]Unit) {
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

func (e *braceExpander) product(a, b [][]Unit) [][]Unit {
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
	out := make([][]Unit, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, append(x[:len(x):len(x)], y...))
		}
	}
	return out
}

// gobble is bash's brace_gobbler. It returns the position of the next effective brace or comma, or len(text).
func gobble(text []Unit, i int, satisfy byte) int {
	level, commas := 0, 1
	if satisfy == '}' {
		commas = 0
	}
	for ; i < len(text); i++ {
		c := text[i].Char
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

func opensNothing(text []Unit) bool {
	return text[0].Char == '{' && (len(text) == 1 || text[1].Char == '}')
}

// separates reports whether a text begins with a comma, or with .. not followed by }.
func separates(text []Unit) bool {
	if text[0].Char != '.' || len(text) == 1 || text[1].Char != '.' {
		return text[0].Char == ','
	}
	return len(text) == 2 || text[2].Char != '}'
}

// sequence expands {1..5}, {a..e} and {1..9..2}. It returns nil if bash leaves the braces unchanged.
func (e *braceExpander) sequence(amble []Unit) [][]Unit {
	characters := make([]byte, len(amble)) // NUL for a part
	for i, u := range amble {
		characters[i] = u.Char
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
	case plainNumber().MatchString(first) && plainNumber().MatchString(last):
		from, _ = strconv.Atoi(first)
		to, _ = strconv.Atoi(last)
	case letters().MatchString(first + ".." + last):
		from, to, text = int(first[0]), int(last[0]), func(n int) string { return string(rune(n)) }
	case stepped, oddEnd().MatchString(first) && oddEnd().MatchString(last):
		by = 0
	default:
		return nil
	}
	if stepped && by > 0 {
		by, _ = strconv.Atoi(plainNumber().FindString(step))
	}
	if by <= 0 {
		e.why = "this sequence in braces is not followed: write the words out"
		return nil
	}
	return e.count(from, to, by, text)
}

func (e *braceExpander) count(from, to, by int, text func(int) string) (out [][]Unit) {
	if from > to {
		by = -by
	}
	if (to-from)/by >= e.left {
		e.why = "braces expand to too many words: write fewer alternatives"
		return nil
	}
	for n := from; (to-n)*by >= 0; n += by {
		var units []Unit
		for _, c := range []byte(text(n)) {
			units = append(units, Unit{Char: c})
		}
		out = append(out, units)
	}
	return out
}

var (
	plainNumber = lazyregexp.New(`^(?:0|-?[1-9]\d{0,8})$`)
	letters     = lazyregexp.New(`^(?:[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])$`)
)

// oddEnd matches ends of sequences that bash may expand but sequence does not, such as 01 or %.
var oddEnd = lazyregexp.New(`^(?s:[\x01-\x7f]\d*|\d.*)$`)

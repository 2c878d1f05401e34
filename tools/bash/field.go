package bash

import (
	"strings"
	"unicode/utf8"
)

// builder puts the parts of one word together into fields.
type builder struct {
	fields  []word
	cur     word
	present bool // the current field exists, if only by its quotes
	bracket bool // a [ is open in it
	slash   int  // where in its pattern a variable's backslash stands, and one; 0 = nowhere
	raw     strings.Builder
	pattern strings.Builder
}

// literal adds known text. Unquoted, it may be a pattern.
func (b *builder) literal(text string, quoted bool) {
	if quoted {
		b.present = true
	}
	if text == "" {
		return
	}
	if b.cur.number = false; b.cur.dynamic {
		return
	}
	b.present = true
	b.raw.WriteString(text)
	for i := range len(text) {
		c := text[i]
		meta := strings.IndexByte(`*?[]\`, c) >= 0
		if meta && quoted {
			b.pattern.WriteByte('\\')
		}
		if !quoted {
			if c == '\\' && b.slash == 0 {
				b.slash = b.pattern.Len() + 1
			}
			b.bracket = b.bracket || c == '['
			b.cur.glob = b.cur.glob || c == '*' || c == '?' || c == ']' && b.bracket
		}
		b.pattern.WriteByte(c)
	}
}

// number adds some number.
func (b *builder) number() {
	alone := !b.present
	b.unknown(true)
	b.cur.number = alone
}

// unknown adds a value that is known only at run time.
func (b *builder) unknown(quoted bool) {
	b.present = true
	b.cur.split = b.cur.split || !quoted
	b.cur.dynamic, b.cur.number = true, false
}

// cut ends the current field.
func (b *builder) cut() {
	if b.present {
		b.cur.text = b.raw.String()
		b.cur.dynamic = b.cur.dynamic || b.cur.glob && b.slash > 0
		if b.cur.glob && !b.cur.dynamic {
			b.cur.text = b.pattern.String()
		}
		if b.cur.dynamic && b.cur.glob {
			b.cur.text, b.cur.glob = literalPrefix(b.known()), false
		}
		b.fields = append(b.fields, b.cur)
	}
	b.cur, b.present, b.bracket, b.slash = word{}, false, false, 0
	b.raw.Reset()
	b.pattern.Reset()
}

// known returns the part of the pattern that tells how the word begins. A backslash
// in a variable's value is gone where the pattern matches, and stays where not.
func (b *builder) known() string {
	if b.slash > 0 {
		return b.pattern.String()[:b.slash-1]
	}
	return b.pattern.String()
}

// literalPrefix returns a pattern's text before its first special character.
func literalPrefix(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[':
			return out.String()
		case '\\':
			i++
		}
		if i < len(pattern) {
			out.WriteByte(pattern[i])
		}
	}
	return out.String()
}

// lit adds literal text, with backslashes taken as in or outside double quotes.
func (w *walker) lit(text string, b *builder, quoted bool) {
	if quoted {
		b.literal(unescape(text, true), true)
		return
	}
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			b.literal(text, false)
			return
		}
		b.literal(text[:i], false)
		if i+1 == len(text) {
			b.literal(`\`, true)
			return
		}
		if text[i+1] != '\n' {
			_, size := utf8.DecodeRuneInString(text[i+1:])
			b.literal(text[i+1:i+1+size], true)
			i += size - 1
		}
		text = text[i+2:]
	}
}

// unescape removes backslashes as the shell does; in double quotes only those
// before characters that are special there.
func unescape(s string, inQuotes bool) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!inQuotes || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

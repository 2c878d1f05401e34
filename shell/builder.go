package shell

import (
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/shell/texts"
)

// builder joins the parts of one word into fields.
type builder struct {
	fields  []word
	cur     word
	present bool // set by quotes even if they are empty
	bracket bool
	slash   int // 1 + index of a variable's backslash in the pattern; 0 = none
	raw     strings.Builder
	lost    strings.Builder // values that are split otherwise than at blanks
	pattern strings.Builder
	sample  strings.Builder
	unclear bool // sample lacks more than the names that mktemp makes
}

func (b *builder) literal(text string, quoted bool) {
	if quoted {
		b.present = true
	}
	if text == "" {
		return
	}
	b.unclear = b.unclear || strings.HasPrefix(strings.TrimLeft(text, `'"`), "/") && strings.HasSuffix(b.sample.String(), texts.MadeName) // what mktemp prints may be empty
	b.sample.WriteString(text)
	if b.cur.either = texts.Each(b.cur.either, "\x00"+text); b.cur.many && strings.ContainsAny(text, " \t\n") {
		b.cur.either = "" // its texts are split at blanks
	}
	if b.cur.number, b.cur.orEmpty, b.cur.fresh = false, false, false; b.cur.dynamic {
		special := strings.ContainsAny(text, "*?[") || b.bracket && strings.Contains(text, "]")
		b.cur.glob = b.cur.glob || special && !quoted
		return
	}
	b.present = true
	b.raw.WriteString(text)
	for i := range len(text) {
		if !quoted {
			b.special(text[i])
		} else if strings.IndexByte(`*?[]\`, text[i]) >= 0 {
			b.pattern.WriteByte('\\')
		}
		b.pattern.WriteByte(text[i])
	}
}

func (b *builder) special(c byte) {
	switch {
	case c == '\\' && b.slash == 0:
		b.slash = b.pattern.Len() + 1
	case c == '[':
		b.bracket = true
	case c == '*', c == '?', c == ']' && b.bracket:
		b.cur.glob = true
	}
}

// unknown adds any number of words, one if quoted.
func (b *builder) unknown(quoted bool) {
	b.present, b.unclear = true, true
	b.cur.many = b.cur.many || !quoted
	b.cur.glob = b.cur.glob || b.bracket && !quoted
	b.cur.dynamic, b.cur.number, b.cur.orEmpty, b.cur.fresh, b.cur.either = true, false, false, false, ""
}

func (b *builder) value(v value, quoted bool, s *state) {
	splits := !quoted && s.split
	switch number := v.surelyNumber(); {
	case len(v.text)+b.raw.Len() > texts.MaxScript:
		b.unknown(false)
	case quoted && v.known():
		b.literal(v.text, true)
	case splits && (v.text != "" || !v.known()):
		b.lost.WriteString(v.text + " ")
		b.unknown(false)
	case v.glob:
		b.matched(v, quoted)
	case quoted, number, v.fresh, v.either != "":
		b.beginning(v, quoted || number)
	case v.dynamic:
		b.unknown(false)
	default:
		b.split(v.text)
	}
}

// beginning adds a value of which only the prefix is known, as one word or any number of words.
func (b *builder) beginning(v value, one bool) {
	begins, all := !b.present, b.raw.Len() == 0 && !b.cur.dynamic
	before := b.cur.either
	if !b.cur.dynamic && !b.cur.glob {
		before = "\x00" + b.raw.String()
	}
	if !one && strings.ContainsAny(before, " \t\n") {
		before = ""
	}
	b.literal(v.text, true)
	unclear := b.unclear || !v.fresh
	b.unknown(one)
	if b.unclear = unclear; !unclear {
		b.sample.WriteString(strings.TrimPrefix(texts.FreshDir, v.text) + texts.MadeName)
	}
	b.cur.number, b.cur.orEmpty = v.number && begins, v.orEmpty && begins
	b.cur.fresh, b.cur.either = v.fresh && all, texts.Each(before, v.either)
}

func (b *builder) matched(v value, quoted bool) {
	switch prefix := texts.LiteralPrefix(v.text); {
	case quoted && prefix == v.text:
		b.literal(prefix, true)
	case b.raw.Len() == 0 && !b.cur.dynamic:
		b.literal(v.text, false)
		b.cur.many = !quoted
	default:
		b.unknown(quoted)
	}
}

func (b *builder) split(text string) {
	if !strings.ContainsAny(text, " \t\n") {
		b.literal(text, false)
		return
	}
	isBlank := func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }
	if isBlank(rune(text[0])) {
		b.cut()
	}
	for i, field := range strings.FieldsFunc(text, isBlank) {
		if i > maxWords {
			return
		}
		if i > 0 {
			b.cut()
		}
		b.literal(field, false)
	}
	if isBlank(rune(text[len(text)-1])) {
		b.cut()
	}
}

func (b *builder) cut() {
	if b.present {
		b.cur.text = b.raw.String()
		b.cur.dynamic = b.cur.dynamic || b.cur.glob && b.slash > 0
		if b.cur.glob && !b.cur.dynamic {
			b.cur.text = b.pattern.String()
		}
		if b.cur.dynamic && b.cur.glob {
			known := b.pattern.String()
			if b.slash > 0 {
				known = known[:b.slash-1] // whether a backslash from a value is kept is unknown
			}
			b.cur.text, b.cur.glob = texts.LiteralPrefix(known), false
			b.cur.many = b.cur.many || b.cur.text == "" || b.cur.text[0] == '-'
		}
		if !b.unclear {
			b.cur.sample = b.sample.String()
		}
		b.fields = append(b.fields, b.cur)
	}
	b.cur, b.present, b.bracket, b.slash, b.unclear = word{}, false, false, 0, false
	b.sample.Reset()
	b.raw.Reset()
	b.pattern.Reset()
}

func (b *builder) one() value {
	b.cut()
	switch len(b.fields) {
	case 0:
		return value{}
	case 1:
		return b.fields[0].value
	}
	return unknown()
}

func (w *walker) lit(text string, b *builder, quoted bool) {
	if quoted {
		b.literal(texts.Unescape(text, true), true)
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

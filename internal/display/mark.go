package display

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mark shows invisible characters as ⟨U+202E⟩, unless emoji, scripts with joiners or direction marks, or the
// beginning of the text require them.
func Mark(text string) string {
	var b strings.Builder
	last := rune(-1)
	done := 0
	for i, r := range text {
		if r >= 0xad && isInvisible(r) && !isNeeded(last, r, text[i+utf8.RuneLen(r):]) {
			b.WriteString(text[done:i])
			b.WriteString(codePoint(r))
			done = i + utf8.RuneLen(r)
		}
		last = r
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// invisible lists the invisible characters outside of the category Cf.
const invisible = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"

// prepended lists the visible characters in the category Cf.
const prepended = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"

func isInvisible(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return false
	case unicode.Is(unicode.Cf, r):
		return !strings.ContainsRune(prepended, r) && (r < 0x13430 || r > 0x1343f) // the last join hieroglyphs
	case unicode.Is(unicode.Variation_Selector, r), r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return strings.ContainsRune(invisible, r)
}

func isNeeded(before, r rune, after string) bool {
	next, _ := utf8.DecodeRuneInString(after)
	switch r {
	case '\ufeff':
		return before == -1
	case '\u200d':
		if isPictograph(before) && isPictograph(next) {
			return true
		}
		return unicode.In(before, joining...) && (unicode.In(next, joining...) || !unicode.IsLetter(next))
	case '\u200c':
		return unicode.In(before, joining...) && unicode.In(next, joining...)
	case '\u200e', '\u200f', '\u061c':
		return unicode.In(before, rightToLeft...) || unicode.In(next, rightToLeft...)
	case '\ufe0e', '\ufe0f':
		return unicode.In(before, unicode.So, unicode.Sm, unicode.Po) || isKeycap(before, next)
	case '\u180b', '\u180c', '\u180d', '\u180e', '\u180f':
		return unicode.Is(unicode.Mongolian, before)
	}
	return false
}

func isPictograph(r rune) bool {
	isSkin := r >= 0x1f3fb && r <= 0x1f3ff
	return unicode.Is(unicode.So, r) || r == '\ufe0f' || isSkin
}

func isKeycap(r, next rune) bool { return r >= '0' && r <= '9' && next == '\u20e3' }

var (
	rightToLeft = []*unicode.RangeTable{unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko}
	joining     = []*unicode.RangeTable{
		unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
		unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
	}
)

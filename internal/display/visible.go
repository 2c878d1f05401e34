package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible writes text so that a person who decides on it sees all of it, and
// sees it in order: control, invisible and direction-changing characters and
// bytes that are no UTF-8 become escapes. Newlines and tabs stay.
func Visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(blankLetters, r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blankLetters are letters and symbols that show as nothing.
const blankLetters = "\u034f\u115f\u1160\u3164\uffa0\u2800"

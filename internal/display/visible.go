package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes control, invisible and direction-changing characters and invalid UTF-8,
// so that an approver sees all of a text, in order. It keeps newlines and tabs.
func Visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || strings.ContainsRune(emptyLetters, r):
			fmt.Fprintf(&b, `\u{%04x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line is Visible of text on one line.
func Line(text string) string { return strings.ReplaceAll(Visible(text), "\n", `\n`) }

// emptyLetters contains invisible letters and symbols.
const emptyLetters = "\u034f\u115f\u1160\u3164\uffa0\u2800"
